"""Command lines of programs that reach the network, for the client matrices. {} is a host."""
from lab import space

CLIENTS = f"{space.BASE}/clients"


def python(kind, url):
    return f"/usr/bin/python3 -I {CLIENTS}/get.py {kind} {url}"


def node(kind, url):
    return f"NODE_PATH=/usr/share/nodejs node {CLIENTS}/get.js {kind} {url}"


def java(url, options=""):
    return f"/usr/lib/jvm/default-java/bin/java -XX:TieredStopAtLevel=1 -Xshare:auto {options} -cp {CLIENTS} Fetch {url}"


PIP = ("/usr/bin/python3 -m pip --isolated --disable-pip-version-check download --no-deps --retries 1 "
       "--no-cache-dir --index-url https://{}/simple/ tinylab && ls")
NPM = ("npm_config_fetch_retries=0 npm_config_update_notifier=false "
       "npm install --no-audit --no-fund --registry https://{}/ tinylab && ls node_modules")
CARGO = """mkdir -p crate/src && cd crate && touch src/lib.rs
printf '[package]\\nname="a"\\nversion="0.1.0"\\nedition="2018"\\n[dependencies]\\ntinylab={{version="1",registry="lab"}}\\n' >Cargo.toml
export CARGO_HOME=$PWD/home CARGO_REGISTRIES_LAB_INDEX=sparse+https://{}/index/ CARGO_NET_RETRY=0
export RUSTC_BOOTSTRAP=1 CARGO_UNSTABLE_SPARSE_REGISTRY=true # before cargo 1.68
/usr/bin/cargo fetch && ls home/registry/cache/*"""
APT = """mkdir -p apt/lists/partial apt/archives/partial
echo 'deb [trusted=yes] {} ./' >apt/sources
: >apt/status
set -- -o Dir::Etc::SourceList=$PWD/apt/sources -o Dir::Etc::SourceParts=/dev/null -o Dir::State=$PWD/apt \
  -o Dir::State::Status=$PWD/apt/status -o Dir::State::Lists=$PWD/apt/lists -o Dir::Cache=$PWD/apt \
  -o APT::Sandbox::User=$(id -un) -o Acquire::Retries=0 -o Acquire::Languages=none
apt-get "$@" --error-on=any update && apt-get "$@" download tinylab && ls"""
