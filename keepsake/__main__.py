"""`python -m keepsake`, the same as `keepsake`."""

from keepsake.surfaces.main import main

if __name__ == "__main__":
    main()
