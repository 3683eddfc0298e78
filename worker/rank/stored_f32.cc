#include "worker/rank/stored_f32.h"

#include <algorithm>
#include <array>

#include "proto/base/bf16.h"
#include "proto/base/check.h"
#include "proto/base/fp16.h"
#include "proto/base/status.h"

namespace troupe {
namespace {

// Of two bytes each, converted at a time.
constexpr int64_t kWindow = 4096;
using Window = std::array<uint16_t, kWindow>;

float Widened(DType type, uint16_t bits) {
  return type == DType::kBF16 ? FromBF16(bits) : FromFP16(bits);
}

uint16_t Rounded(DType type, float value) {
  return type == DType::kBF16 ? ToBF16(value) : ToFP16(value);
}

}  // namespace

absl::Status ReadF32(TierPort& port, const StoredElements& from, float* host) {
  const int64_t width = static_cast<int64_t>(DTypeBytes(from.type));
  if (from.type == DType::kF32) {
    return port.Read(from.first, from.count * width,
                     reinterpret_cast<char*>(host));
  }
  CHECK_EQ(width, 2) << "parameters of another type";
  Window window;
  for (int64_t done = 0; done < from.count; done += kWindow) {
    const int64_t count = std::min(kWindow, from.count - done);
    RETURN_IF_ERROR(port.Read(from.first + done * width, count * width,
                              reinterpret_cast<char*>(window.data())));
    RETURN_IF_ERROR(port.Settle());
    for (int64_t i = 0; i < count; ++i) {
      host[done + i] = Widened(from.type, window[i]);
    }
  }
  return absl::OkStatus();
}

absl::Status WriteF32(TierPort& port, const StoredElements& to,
                      const float* host) {
  const int64_t width = static_cast<int64_t>(DTypeBytes(to.type));
  if (to.type == DType::kF32) {
    return port.Write(to.first, reinterpret_cast<const char*>(host),
                      to.count * width);
  }
  CHECK_EQ(width, 2) << "parameters of another type";
  Window window;
  for (int64_t done = 0; done < to.count; done += kWindow) {
    const int64_t count = std::min(kWindow, to.count - done);
    for (int64_t i = 0; i < count; ++i) {
      window[i] = Rounded(to.type, host[done + i]);
    }
    RETURN_IF_ERROR(port.Write(to.first + done * width,
                               reinterpret_cast<const char*>(window.data()),
                               count * width));
    RETURN_IF_ERROR(port.Settle());
  }
  return absl::OkStatus();
}

}  // namespace troupe
