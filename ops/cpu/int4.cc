#include "ops/int4.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "ops/cpu/cpu_device.h"
#include "ops/cpu/kernels.h"

namespace troupe::cpu {
namespace {

float ScaleOf(const float* x, int64_t count) {
  float largest = 0;
  bool finite = true;
  for (int64_t i = 0; i < count; ++i) {
    finite &= std::isfinite(x[i]);
    largest = std::max(largest, std::abs(x[i]));
  }
  return finite ? largest / 7 : std::numeric_limits<float>::quiet_NaN();
}

// With 0 and NaN for a scale there is nothing to divide by.
uint8_t NumberOf(float x, float scale) {
  if (!(scale > 0)) return 8;
  return static_cast<uint8_t>(
      8 + std::clamp(std::nearbyint(x / scale), -7.0f, 7.0f));
}

void CompressBlock(const float* x, int64_t count, uint8_t* block) {
  const float scale = ScaleOf(x, count);
  std::memcpy(block, &scale, sizeof(scale));
  uint8_t* const halves = block + sizeof(scale);
  for (int64_t i = 0; i < kInt4Block; i += 2) {
    const uint8_t low = i < count ? NumberOf(x[i], scale) : 8;
    const uint8_t high = i + 1 < count ? NumberOf(x[i + 1], scale) : 8;
    halves[i / 2] = static_cast<uint8_t>(low | (high << 4));
  }
}

void ExpandBlock(const uint8_t* block, int64_t count, float* x) {
  float scale = 0;
  std::memcpy(&scale, block, sizeof(scale));
  const uint8_t* const halves = block + sizeof(scale);
  for (int64_t i = 0; i < count; ++i) {
    const int number = (halves[i / 2] >> (i % 2 * 4)) & 15;
    x[i] = static_cast<float>(number - 8) * scale;
  }
}

template <typename Block>
void ForBlocks(Device& device, const Int4Args& args, Block of_block) {
  const int64_t n = args.elements.elements();
  float* const elements = args.elements.data<float>();
  auto* const compressed =
      reinterpret_cast<uint8_t*>(args.compressed.data<float>());
  CpuDevice::From(device).ForElements(
      (n + kInt4Block - 1) / kInt4Block, [=](int64_t begin, int64_t end) {
        for (int64_t b = begin; b < end; ++b) {
          const int64_t first = b * kInt4Block;
          of_block(elements + first, std::min(kInt4Block, n - first),
                   compressed + b * kInt4BlockBytes);
        }
      });
}

}  // namespace

void ToInt4(Device& device, const Int4Args& args) {
  ForBlocks(device, args, [](const float* x, int64_t count, uint8_t* block) {
    CompressBlock(x, count, block);
  });
}

void FromInt4(Device& device, const Int4Args& args) {
  ForBlocks(device, args, [](float* x, int64_t count, const uint8_t* block) {
    ExpandBlock(block, count, x);
  });
}

}  // namespace troupe::cpu
