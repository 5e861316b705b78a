CURL = "unset http_proxy https_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY all_proxy; "
def test_a(sbx, lab):
    r = sbx.shell(CURL + "curl -sS http://origin.test/; curl -sS https://origin.test/; curl -sS -6 http://origin.test/; curl -sS http://evil.test/; curl -sS https://evil.test; curl -sS http://198.51.100.66/; curl -sS https://198.51.100.66/; getent ahosts origin.test; getent hosts origin.test; curl -sS --socks5-hostname 127.0.0.1:1080 http://origin.test/; curl -sS --socks5 127.0.0.1:1080 https://origin.test/; curl -sS -H 'Host: evil.test' http://origin.test/; curl -sS --connect-to evil.test:443:origin.test:443 https://evil.test/;curl -sS http://other.test:81; curl -sS -p -x http://127.0.0.1:3128 http://origin.test/; cat /etc/resolv.conf; python3 -c 'import socket; s=socket.create_connection((\"other.test\", 5432)); s.send(b\"hello\\n\"); print(s.recv(100), s.getpeername()); s2=socket.create_server((\"127.0.0.1\",5432)); print(\"bound\")'", "--allow", "origin.test", "--allow", "other.test:5432", "--audit", "/tmp/a")
    print(r)
    print(lab.connections)
    assert 0
