#include "worker/rank/into_device.h"

namespace troupe {

TensorToLoad IntoDevice(const StateTensor& tensor, Device& device) {
  std::vector<TensorBox> boxes;
  for (const StateBox& box : tensor.boxes) boxes.push_back(box.whole);
  return {.name = tensor.name,
          .dtype = StoredDType::kF32,
          .shape = tensor.shape,
          .boxes = std::move(boxes),
          .take = [tensor, &device](uint64_t offset, absl::string_view bytes) {
            constexpr int64_t kBytes = sizeof(float);
            const auto begin = static_cast<int64_t>(offset) / kBytes;
            const auto end =
                begin + static_cast<int64_t>(bytes.size()) / kBytes;
            for (const ParameterRun& run : RunsWithin(tensor, begin, end)) {
              device.CopyFromHost(tensor.data + run.local * kBytes,
                                  bytes.data() + (run.whole - begin) * kBytes,
                                  run.count * kBytes);
            }
            return device.Synchronize();
          }};
}

}  // namespace troupe
