"""`python -m tests.loopback FOLDER [PORT]`: the service alone, until it is interrupted."""

import sys
import threading
from pathlib import Path

from tests.loopback.server import Loopback

if __name__ == "__main__":
    with Loopback(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0) as service:
        print(service.url, flush=True)
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            print("stopped", flush=True)
