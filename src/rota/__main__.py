"""`python -m rota`: the command line."""

import sys

from rota.cli import main

sys.exit(main())
