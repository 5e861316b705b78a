"""Prints the page of the URL given, as a program does that knows nothing of a sandbox.

    sbx run --allow example.com -- python3 examples/fetch.py https://example.com/
"""
import sys
import urllib.error
import urllib.request


def main():
    url = sys.argv[1] if len(sys.argv) > 1 else "https://example.com/"
    try:
        with urllib.request.urlopen(url) as answer:
            sys.stdout.buffer.write(answer.read())
    except urllib.error.HTTPError as error:
        print(f"{url}: {error.code} {error.reason}", file=sys.stderr)
        sys.stderr.buffer.write(error.read())
        return 1
    except urllib.error.URLError as error:
        print(f"{url}: {error.reason}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
