// Whether files that others wrote hold the model of a plan: what a checkpoint's
// manifest and the headers of a Hugging Face directory show, before any weight
// is read.
#ifndef TROUPE_WORKER_RANK_MODEL_FILES_H_
#define TROUPE_WORKER_RANK_MODEL_FILES_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/job.pb.h"
#include "proto/plan.pb.h"
#include "storage/checkpoint/check_hugging_face.h"
#include "storage/checkpoint/hugging_face_weights.h"
#include "storage/checkpoint/manifest.h"

namespace troupe {

// The job that wrote the checkpoint; empty where it does not say.
JobSpec JobOf(const Manifest& manifest);

// What the shapes of one rank's tensors do not show: that the checkpoint holds
// more than the job's model, or heads of another size. InvalidArgument with
// what differs. Uses the plan's job and units.
absl::Status CheckSameModel(const Manifest& manifest, const JobSpec& saved,
                            const Plan& plan);

// What a Hugging Face directory of the plan's model holds. Uses the plan's job
// and units.
HuggingFaceContents ContentsOf(const Plan& plan);

// Opens the adapter that the job begins with (training.lora.adapter), whose
// config and weights must be of the adapters of the plan. Errors begin with the
// field. Uses the plan's job and units.
inline constexpr char kAdapterField[] = "training.lora.adapter";
absl::StatusOr<HuggingFaceWeights> OpenAdapterOf(const Plan& plan);

}  // namespace troupe

#endif  // TROUPE_WORKER_RANK_MODEL_FILES_H_
