# Run by ./dev lint, not by make check: the tools that they need are not those of a build.
EXTRA_DIST += tests/lint/run \
  tests/lint/allow.py tests/lint/analyzer.py tests/lint/banned.py tests/lint/clang.py tests/lint/compiler.py \
  tests/lint/completions.py tests/lint/cppcheck.py tests/lint/format.py tests/lint/headers.py tests/lint/install.py \
  tests/lint/layers.py tests/lint/man.py tests/lint/options.py tests/lint/readme.py tests/lint/report.py \
  tests/lint/selftest.py tests/lint/shell.py tests/lint/sizes.py tests/lint/sources.py tests/lint/text.py \
  tests/lint/tidy.py
EXTRA_DIST += tests/bench/bench tests/bench/bare.py tests/bench/client.py tests/bench/network.py tests/bench/peers.py \
  tests/bench/table.py tests/bench/terminated.py tests/bench/https.go \
  tests/bench/server.py
# The suites that run the programs, for ./dev test and for distributions.
EXTRA_DIST += tests/run-suite tests/lab tests/harness tests/e2e tests/attack tests/clients examples

dist-hook:
	find "$(distdir)" -name __pycache__ -prune -exec rm -rf {} +
