// Tests are compiled with GoogleTest's header precompiled, which saves a
// quarter of the work. Where that no longer fits, g++ reads the header instead,
// and only a warning of its and this test tell.
#include "gtest/gtest.h"

namespace troupe {
namespace {

TEST(Precompiled, TestsAreCompiledWithIt) {
#if defined(__clang__)
  GTEST_SKIP() << "for g++ only";
#elif !defined(TROUPE_PRECOMPILED)
  FAIL() << "the precompiled header was not used: third_party/precompiled.bzl "
            "makes it with other flags than third_party/troupe.bzl uses it, or "
            "g++ was upgraded since (bazel clean, without a disk cache)";
#endif
}

}  // namespace
}  // namespace troupe
