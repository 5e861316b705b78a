"""What the tests of credentials share: who saw a secret, and who did not."""
from lab.guarded import SECRETS, Guarded, forms


def no_secret(*texts):
    """None of the texts holds a secret of the lab, in any form."""
    for text in texts:
        data = text if isinstance(text, bytes) else text.encode()
        for secret in SECRETS:
            found = [form for form in forms(secret) if form in data]
            assert not found, (found, data[:4000])


def saw(lab, *hosts, secret=SECRETS[0]):
    """Requests to the hosts that had the secret. Nobody else may have seen any."""
    others = [(r.sni, r.raw) for r in lab.requests if r.sni not in hosts and any(Guarded.sees(r, each) for each in SECRETS)]
    assert others == []
    return [r for r in lab.requests if r.sni in hosts and Guarded.sees(r, secret)]


def nobody_saw(lab):
    assert [(r.sni, r.raw) for r in lab.requests if any(Guarded.sees(r, each) for each in SECRETS)] == []
