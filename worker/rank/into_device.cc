#include "worker/rank/into_device.h"

namespace troupe {

TensorToLoad IntoDevice(const StateTensor& tensor, Device& device) {
  return {.name = tensor.name,
          .dtype = StoredDType::kF32,
          .shape = tensor.shape,
          .take = [to = tensor.data, &device](uint64_t offset,
                                              absl::string_view bytes) {
            device.CopyFromHost(to + offset, bytes.data(), bytes.size());
            return device.Synchronize();
          }};
}

}  // namespace troupe
