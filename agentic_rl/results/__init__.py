"""Run folders and their tables: one writer, one reader."""
