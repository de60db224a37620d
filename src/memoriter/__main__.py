"""`python -m memoriter` is the command line."""

from memoriter.cli import main

if __name__ == "__main__":
    main()
