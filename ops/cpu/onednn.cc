#include "ops/cpu/onednn.h"

#include <oneapi/dnnl/dnnl.hpp>

#include "absl/strings/str_cat.h"

namespace troupe {
namespace {

absl::StatusCode CodeOf(dnnl_status_t status) {
  switch (status) {
    case dnnl_unimplemented:
      return absl::StatusCode::kUnimplemented;
    case dnnl_out_of_memory:
      return absl::StatusCode::kResourceExhausted;
    default:
      return absl::StatusCode::kInternal;
  }
}

}  // namespace

absl::Status CallOneDnn(absl::FunctionRef<void()> body) {
  try {
    body();
  } catch (const dnnl::error& error) {
    return absl::Status(CodeOf(error.status),
                        absl::StrCat("oneDNN: ", error.what()));
  }
  return absl::OkStatus();
}

}  // namespace troupe
