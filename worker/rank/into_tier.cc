#include "worker/rank/into_tier.h"

#include "proto/base/status.h"
#include "worker/rank/stored_f32.h"

namespace troupe {

TensorToLoad IntoTier(const StateTensor& tensor, TierPort& port) {
  std::vector<TensorBox> boxes;
  for (const StateBox& box : tensor.boxes) boxes.push_back(box.whole);
  return {.name = tensor.name,
          .dtype = StoredDType::kF32,
          .shape = tensor.shape,
          .boxes = std::move(boxes),
          .take = [tensor, &port](uint64_t offset,
                                  absl::string_view bytes) -> absl::Status {
            constexpr int64_t kBytes = sizeof(float);
            const auto begin = static_cast<int64_t>(offset) / kBytes;
            const auto end =
                begin + static_cast<int64_t>(bytes.size()) / kBytes;
            for (const SliceRun& run : RunsWithin(tensor, begin, end)) {
              RETURN_IF_ERROR(
                  WriteF32(port, tensor.At(run),
                           reinterpret_cast<const float*>(bytes.data()) +
                               run.whole - begin));
            }
            return port.Settle();
          }};
}

}  // namespace troupe
