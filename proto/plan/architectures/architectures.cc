#include "proto/plan/architectures/architecture.h"

namespace troupe {

const std::vector<Architecture>& Architectures() {
  static const auto* const kArchitectures = new std::vector<Architecture>{
      Gpt2(),       GptNeox(), Llama(),    Mistral(),  Qwen2(),
      Qwen3(),      Mixtral(), Qwen2Moe(), Qwen3Moe(), Olmoe(),
      DeepseekV3(), Graph(),   Synthetic()};
  return *kArchitectures;
}

}  // namespace troupe
