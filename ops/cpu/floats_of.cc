#include "ops/cpu/floats_of.h"

#include "ops/activation_type.h"

namespace troupe::cpu {

std::vector<float> FloatsOf(const Tensor& tensor) {
  if (!tensor.defined() || tensor.raw() == nullptr) return {};
  std::vector<float> floats(tensor.elements());
  WithActivationType(tensor.dtype(), [&]<typename T>() {
    const T* const elements = tensor.data<T>();
    for (size_t i = 0; i < floats.size(); ++i) {
      floats[i] = FromElement(elements[i]);
    }
  });
  return floats;
}

}  // namespace troupe::cpu
