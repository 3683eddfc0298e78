#include "proto/plan/architectures/architecture.h"

namespace troupe {

std::vector<Architecture> Architectures() {
  return {Gpt2(), Llama(), Synthetic()};
}

}  // namespace troupe
