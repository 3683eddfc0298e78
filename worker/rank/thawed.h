// What a job trains that was frozen in the job that wrote the checkpoint which
// it resumes (training.freeze): the checkpoint has no optimizer states of that,
// so they begin at zero.
#ifndef TROUPE_WORKER_RANK_THAWED_H_
#define TROUPE_WORKER_RANK_THAWED_H_

#include <string>

#include "absl/strings/string_view.h"
#include "proto/job.pb.h"
#include "proto/plan.pb.h"

namespace troupe {

// Whether `state_tensor` is an optimizer's state ("optimizer.exp_avg.NAME") of
// a parameter that was frozen in the job `saved`.
bool StateWasFrozen(const JobSpec& saved, absl::string_view state_tensor);

// What to say of them: "the optimizer's states of 3 tensors that were frozen
// there begin at zero", and with AdamW how large their first update is; empty where there are none.
std::string StatesThatBegin(const JobSpec& saved, const Plan& plan);

}  // namespace troupe

#endif  // TROUPE_WORKER_RANK_THAWED_H_
