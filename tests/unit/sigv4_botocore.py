#!/usr/bin/python3
"""Signatures (proxy/sigv4.h) are those that botocore makes, of requests that nobody would think of.

Run by make check in the build directory. The requests are the same in every run.
"""
import hashlib
import os
import random
import subprocess
import sys

try:
    from botocore import auth, awsrequest, credentials
except ImportError:
    sys.exit("sigv4_botocore: botocore is missing; install python3-boto3")

TOOL = os.path.abspath("tests/unit/sigv4_tool")
SECRET = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
COUNT = 4000
STORAGE = ("s3", "s3express", "s3-outposts", "s3-object-lambda")

# What AWS has as its examples, as well.
FIXED = [
    ("GET", "/"), ("GET", "/?Param2=value2&Param1=value1"), ("GET", "/?Param1=value2&Param1=Value1"), ("POST", "/"),
    ("GET", "/?%E1%88%B4=bar"), ("GET", "/%E1%88%B4"), ("GET", "/example%20space/"), ("GET", "//"), ("GET", "//example//"),
    ("GET", "/example/.."), ("GET", "/./"), ("GET", "/./example"), ("GET", "/example1/example2/../.."), ("GET", "/.."),
    ("GET", "/a/../../b"), ("GET", "/..a/.b/...") , ("GET", "/?a"), ("GET", "/?a=&b"), ("GET", "/?a-b=1&a=2&a%21=3"),
]
SEGMENTS = ["", ".", "..", "a", "b%20c", "%2F", "%C3%A9", "~x", "a+b", "a=b", "a:b", "(1)", "%25", "x.y", "-_", "@$,;!*'"]
NAMES = ["a", "A", "a-b", "a%2Fb", "list-type", "%C3%A9", "z", "prefix", "X-Amz-Meta", "a.b", "~"]
VALUES = ["", "1", "%20", "a%2Bb", "%3D%26", "~", "%C3%A9", "-._", "Z", "z"]
FIELDS = ["X-Amz-Meta-A", "content-type", "X-AMZ-META-B", "x-amz-target", "Range", "Zeta", "x-amz-security-token"]
WORDS = ["a", "  b", "c  d", '"e   f"', "g\th", "", "i,j", "K=/;"]


def make(generator, method, target, service):
    fields = [(name, "".join(generator.choices(WORDS, k=generator.randrange(4))).strip())
              for name in generator.sample(FIELDS, generator.randrange(len(FIELDS)))]
    if fields and generator.random() < 0.2:
        fields.append((fields[0][0], "again"))
    body = generator.randbytes(generator.randrange(9))
    sum_of_body = hashlib.sha256(body).hexdigest()
    kind = generator.choice(["hash", "unsigned", "absent", "trailer"]) if service in STORAGE else generator.choice(["absent", "hash"])
    if kind != "absent":
        fields.append(("X-Amz-Content-SHA256", {"hash": sum_of_body, "unsigned": "UNSIGNED-PAYLOAD",
                                                "trailer": "STREAMING-UNSIGNED-PAYLOAD-TRAILER"}[kind]))
    host = generator.choice(["example.amazonaws.com", "b.s3.amazonaws.com", "h.test:8443"])
    return method, target, [("Host", host), ("X-Amz-Date", "20150830T123600Z"), *fields], body, service, host


def sign(method, target, fields, body, service, host):
    """The head with what botocore says, and the signature."""
    kind = auth.S3SigV4Auth if service in STORAGE else auth.SigV4Auth
    signer = kind(credentials.Credentials("AKIDEXAMPLE", SECRET), service, "us-east-1")
    request = awsrequest.AWSRequest(method, f"https://{host}{target}", data=body)
    for name, value in fields:
        request.headers.add_header(name, value)
    request.context["timestamp"] = "20150830T123600Z"
    names = signer.signed_headers(signer.headers_to_sign(request))
    signature = signer.signature(signer.string_to_sign(request, signer.canonical_request(request)), request)
    lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in fields),
             f"Authorization: AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/{service}/aws4_request, "
             f"SignedHeaders={names}, Signature={'0' * 64}"]
    return "".join(line + "\r\n" for line in [*lines, ""]).encode(), signature


def targets(generator):
    path = "/" + "/".join(generator.choices(SEGMENTS, k=generator.randrange(6)))
    query = "&".join(generator.choice(NAMES) + generator.choice(["", "=" + generator.choice(VALUES)])
                     for _ in range(generator.randrange(5)))
    return path + ("?" + query if query else "")


def main():
    generator = random.Random(4)
    made = [make(generator, method, target, service) for method, target in FIXED for service in ("service", "s3")]
    made += [make(generator, generator.choice(["GET", "PUT", "POST"]), targets(generator), generator.choice(["lambda", "s3"]))
             for _ in range(COUNT)]
    signed = [sign(*request) for request in made]
    text = b"".join(f"{SECRET} {hashlib.sha256(request[3]).hexdigest()} {len(head)}\n".encode() + head
                    for request, (head, _) in zip(made, signed, strict=True))
    answers = subprocess.run([TOOL], input=text, check=True, capture_output=True).stdout.decode().splitlines()
    wrong = [(head.decode(), signature, answer) for (head, signature), answer in zip(signed, answers, strict=True)
             if signature != answer]
    for head, signature, answer in wrong[:5]:
        print(f"{head}wanted {signature}\ngot    {answer}\n")
    print(f"{len(signed)} requests, {len(wrong)} signed otherwise than botocore does")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
