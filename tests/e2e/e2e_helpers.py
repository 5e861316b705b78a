"""Small things that several end-to-end tests do."""
from harness.wire import get, talk


def status_of(sbx, url, *options):
    """Status that a request for the URL gets inside."""
    return talk(sbx, get(url, "Connection: close"), options=list(options)).status
