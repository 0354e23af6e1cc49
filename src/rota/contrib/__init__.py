"""Work of an application in systems that it does not own. Each module loads what it needs at its first use."""
