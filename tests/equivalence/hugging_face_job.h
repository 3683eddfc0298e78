// Jobs of one step on models that transformers made, and what it says of them
// (tests/oracle/hf).
#ifndef TROUPE_TESTS_EQUIVALENCE_HUGGING_FACE_JOB_H_
#define TROUPE_TESTS_EQUIVALENCE_HUGGING_FACE_JOB_H_

#include <cstdint>
#include <string>
#include <vector>

#include "proto/job.pb.h"

namespace troupe {

// What transformers says of a model directory.
struct Expected {
  explicit Expected(const std::string& model);

  std::string directory;
  std::vector<int32_t> ids;
  std::vector<int32_t> greedy;
  double loss = 0;
};

// Nothing is there.
std::string FreshPath(const std::string& name);

// One step on the one window that the ids are.
JobSpec OneStep(const Expected& expected, const ModelSpec& model);

// As many ids as `greedy` has, the likeliest ones, by a checkpoint.
std::vector<int32_t> Continue(const std::string& checkpoint,
                              const Expected& expected);

}  // namespace troupe

#endif  // TROUPE_TESTS_EQUIVALENCE_HUGGING_FACE_JOB_H_
