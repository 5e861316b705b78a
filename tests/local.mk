include tests/unit/local.mk
include tests/unit/core.mk
include tests/fuzz/local.mk
