#include "proto/plan/architectures/architecture.h"

namespace troupe {

std::vector<Architecture> Architectures() {
  return {Gpt2(),       GptNeox(), Llama(),    Mistral(),  Qwen2(),
          Qwen3(),      Mixtral(), Qwen2Moe(), Qwen3Moe(), Olmoe(),
          DeepseekV3(), Graph(),   Synthetic()};
}

}  // namespace troupe
