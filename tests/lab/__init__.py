"""The lab: a small fake internet in namespaces of its own.

Theory of operation
    space   puts this process into a new network and mount namespace (as a plain user into a user namespace first,
            in which the user keeps its own uid), makes every address local, mounts scratch trees, lays the lab's
            own resolv.conf, hosts and CA certificates over those of the machine, and drops what privilege it got.
    dns     a name server whose zone is a dictionary; it can lie, stay silent or answer differently each time.
    origin  HTTP/1, TLS and plain TCP servers that write down every connection and request they get.
    ca      a certification authority made with openssl(1) at each start.
    world   all of it with the names that the tests use.

    registry    what package managers and git fetch, made at set-up
    aws         services that check signatures
    guarded     services that want a login, and origins with certificates that nobody should believe
    services    PostgreSQL, Redis, SSH, WebSocket, and the registries at *.svc.test, for the client matrix

What runs inside the lab, sbx among it, takes the lab for its machine. Every IPv4 and IPv6 address leads to the lab's
own servers, also private and link-local ones, so that a connection that ought never to be made is not lost but
recorded. Nothing leaves the namespace: it has no interface but lo.
"""
