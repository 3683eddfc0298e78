// Sequences of several documents each, as ops/documents.h has them.
#ifndef TROUPE_TESTS_OPS_RANDOM_DOCUMENTS_H_
#define TROUPE_TESTS_OPS_RANDOM_DOCUMENTS_H_

#include <cstdint>
#include <random>

#include "ops/device.h"
#include "tests/ops/test_tensor.h"

namespace troupe {

// No kernel for GPUs stays within documents (ops/cuda/kernel_device.h).
inline bool TakesDocuments(const Device& device) {
  return device.kind() == DeviceKind::kCpu;
}

// [batch, length]; documents have 1 to `longest` tokens, and are cut anywhere.
inline Values RandomDocuments(int64_t batch, int64_t length, int64_t longest,
                              uint32_t seed = 1) {
  std::mt19937 generator(seed);
  std::uniform_int_distribution<int64_t> tokens(1, longest);
  Values documents;
  for (int64_t b = 0; b < batch; ++b) {
    int64_t end = 0, begin = 0;
    for (int64_t t = 0; t < length; ++t) {
      if (t == end) {
        begin = t;
        end = t + tokens(generator);
      }
      documents.push_back(static_cast<double>(begin));
    }
  }
  return documents;
}

}  // namespace troupe

#endif  // TROUPE_TESTS_OPS_RANDOM_DOCUMENTS_H_
