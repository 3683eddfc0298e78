// Tests are compiled with the headers that most of them include precompiled,
// which saves half of the work. Where that no longer fits, g++ reads each
// header again, and only a warning of its and this test tell.
#include "gtest/gtest.h"

namespace troupe {
namespace {

TEST(Precompiled, TestsAreCompiledWithIt) {
#if defined(__clang__)
  GTEST_SKIP() << "for g++ only";
#elif !defined(TROUPE_PRECOMPILED)
  FAIL()
      << "the precompiled headers were not used: third_party/precompiled.bzl "
         "makes them with other flags than third_party/troupe.bzl uses them, "
         "or "
         "g++ was upgraded since (bazel clean, without a disk cache)";
#endif
}

}  // namespace
}  // namespace troupe
