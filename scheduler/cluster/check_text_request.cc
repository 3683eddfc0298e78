#include "scheduler/cluster/check_text_request.h"

#include <cmath>
#include <tuple>

#include "absl/strings/str_cat.h"

namespace troupe {

absl::Status CheckTextRequest(const GenerateRequest& request,
                              const Limits& limits) {
  const int64_t id_bytes = int64_t{request.prompt_ids_size()} * 4;
  if (id_bytes > limits.prompt_bytes_max) {
    return absl::InvalidArgumentError(
        absl::StrCat("prompt_ids: ", request.prompt_ids_size(),
                     " are more than ", limits.prompt_bytes_max / 4));
  }
  if (!request.prompt().empty() && request.prompt_ids_size() > 0) {
    return absl::InvalidArgumentError(
        "prompt and prompt_ids: give one of them");
  }
  if (static_cast<int64_t>(request.prompt().size()) > limits.prompt_bytes_max) {
    return absl::InvalidArgumentError(
        absl::StrCat("prompt: ", request.prompt().size(), " bytes are more ",
                     "than ", limits.prompt_bytes_max));
  }
  if (request.max_new_tokens() < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "max_new_tokens: ", request.max_new_tokens(), " is less than 1"));
  }
  if (request.max_new_tokens() > limits.new_tokens_max) {
    return absl::InvalidArgumentError(
        absl::StrCat("max_new_tokens: ", request.max_new_tokens(),
                     " is more than ", limits.new_tokens_max));
  }
  if (!(request.temperature() >= 0) || std::isinf(request.temperature())) {
    return absl::InvalidArgumentError(
        absl::StrCat("temperature: ", request.temperature(),
                     " is no number from 0 on; 0 is greedy"));
  }
  if (request.top_k() < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "top_k: ", request.top_k(), " is less than 0, which means all"));
  }
  for (const auto& [name, given, size] :
       {std::tuple("tensor", request.has_tensor(), request.tensor()),
        std::tuple("pipeline", request.has_pipeline(), request.pipeline())}) {
    if (!given || (size >= 1 && size <= limits.workers_max)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": ", size, " is no number of workers from 1 to ",
                     limits.workers_max));
  }
  return absl::OkStatus();
}

}  // namespace troupe
