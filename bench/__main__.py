"""`make bench`: every measurement, one after the other."""

from bench.recurrence import main

if __name__ == "__main__":
    main()
