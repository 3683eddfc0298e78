#include "ops/cpu/onednn.h"

#include <oneapi/dnnl/dnnl.hpp>

#include "gtest/gtest.h"

namespace troupe {
namespace {

// As where it has no code for bf16.
TEST(CallOneDnn, MakesAStatusOfAnException) {
  EXPECT_TRUE(CallOneDnn([] {}).ok());
  const absl::Status none =
      CallOneDnn([] { throw dnnl::error(dnnl_unimplemented, "no primitive"); });
  EXPECT_EQ(none.code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(none.message(), "oneDNN: no primitive");
  EXPECT_EQ(CallOneDnn([] {
              throw dnnl::error(dnnl_out_of_memory, "too large");
            }).code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(CallOneDnn([] {
              throw dnnl::error(dnnl_invalid_arguments, "wrong");
            }).code(),
            absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace troupe
