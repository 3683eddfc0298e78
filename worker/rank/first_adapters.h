// What the weights of adapters (training.lora) are as their training begins:
// those of training.lora.adapter, or random ones.
#ifndef TROUPE_WORKER_RANK_FIRST_ADAPTERS_H_
#define TROUPE_WORKER_RANK_FIRST_ADAPTERS_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "ops/device.h"
#include "proto/plan.pb.h"
#include "storage/checkpoint/hugging_face_weights.h"
#include "storage/checkpoint/tensor_box.h"

namespace troupe {

// Move-only. Borrows the plan and the device, which is the host.
class FirstAdapters {
 public:
  // Opens the files that the job names. Errors as OpenAdapterOf
  // (model_files.h).
  static absl::StatusOr<FirstAdapters> Open(const Plan& plan, Device& host);

  // The adapter's parameter of this name; null: it is of the model, or a state.
  const Parameter* Find(absl::string_view name) const;

  // Elements of the whole parameter. DataLoss names an element that is no
  // number.
  absl::Status Read(const Parameter& adapter, const FlatRange& range,
                    float* out) const;

 private:
  FirstAdapters(const Plan& plan, Device& host)
      : plan_(&plan), host_(&host) {}

  const Plan* plan_;
  Device* host_;
  absl::optional<HuggingFaceWeights> files_;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_RANK_FIRST_ADAPTERS_H_
