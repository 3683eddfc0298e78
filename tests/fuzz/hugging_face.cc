// Any text as a Hugging Face config.json: what is accepted is written as a
// config.json, as `troupe export` does, and that is accepted too.
#include <cstdint>
#include <string>

#include "clients/hugging_face/config.h"
#include "proto/base/check.h"
#include "proto/job.pb.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<troupe::ModelSpec> model =
      troupe::ParseHuggingFaceConfig(text, "config.json");
  if (!model.ok()) return 0;
  const std::string written = troupe::FormatHuggingFaceConfig(
      {.model = *model, .dtype = "float32", .base = text});
  CHECK_OK(troupe::ParseHuggingFaceConfig(written, "written").status());
  return 0;
}
