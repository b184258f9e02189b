"""TextWorld itself, in worker processes: the reference that the compiled engine is held to.

TextWorld is imported in the workers only. They end with the run: each watches its input and its
parent. A game file is checked before a worker sees it, and no worker evaluates text of it.
"""
