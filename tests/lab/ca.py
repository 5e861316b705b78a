"""A certification authority for the lab, made with openssl(1) at each start and forgotten afterwards."""
import os
import subprocess


def openssl(*args):
    subprocess.run(["openssl", *args], check=True, capture_output=True)


class Authority:
    """directory gets ca.pem, ca.key, and NAME.pem with key and certificate for each leaf."""

    def __init__(self, directory):
        self.directory = directory
        os.makedirs(directory, exist_ok=True)
        self.certificate = f"{directory}/ca.pem"
        self.key = f"{directory}/ca.key"
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                "-subj", "/CN=lab test authority", "-keyout", self.key, "-out", self.certificate,
                "-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign,cRLSign")

    def issue(self, stem, names, days=1):
        """A leaf for the names and addresses; returns the path of a file with key and certificate. It expired where days
        is negative."""
        path = f"{self.directory}/{stem}"
        alternatives = ",".join(("IP:" if n.replace(".", "").isdigit() or ":" in n else "DNS:") + n for n in names)
        with open(f"{path}.ext", "w") as file:
            file.write(f"subjectAltName={alternatives}\nbasicConstraints=CA:FALSE\nextendedKeyUsage=serverAuth\n"
                       "authorityKeyIdentifier=keyid\nsubjectKeyIdentifier=hash\nkeyUsage=digitalSignature\n")
        openssl("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                "-subj", f"/CN={names[0][:60]}", "-keyout", f"{path}.key", "-out", f"{path}.csr")
        sign = ["x509", "-req", "-in", f"{path}.csr", "-CA", self.certificate, "-CAkey", self.key, "-CAcreateserial",
                "-extfile", f"{path}.ext", "-out", f"{path}.crt"]
        try:
            openssl(*sign, "-days", str(days))
        except subprocess.CalledProcessError:  # from 3.5 on, for a negative number
            openssl(*sign, "-not_before", "20200101000000Z", "-not_after", "20200102000000Z")
        with open(f"{path}.pem", "w") as out:
            for part in ("key", "crt"):
                with open(f"{path}.{part}") as file:
                    out.write(file.read())
        return f"{path}.pem"

    def install(self, directory):
        """Makes directory (that lies over /etc/ssl/certs) trust this authority: bundle and hashed link."""
        with open(self.certificate) as file:
            text = file.read()
        with open(f"{directory}/ca-certificates.crt", "w") as file:
            file.write(text)
        digest = subprocess.run(["openssl", "x509", "-hash", "-noout", "-in", self.certificate], check=True,
                                capture_output=True, text=True).stdout.strip()
        with open(f"{directory}/{digest}.0", "w") as file:
            file.write(text)
