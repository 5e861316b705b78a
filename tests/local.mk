include tests/unit/local.mk
include tests/fuzz/local.mk
