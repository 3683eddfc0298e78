// The job that `troupe eval` submits: `evaluate: true`, with the model that a
// directory holds, and what its user leaves open.
#ifndef TROUPE_CLIENTS_CLI_EVALUATION_JOB_H_
#define TROUPE_CLIENTS_CLI_EVALUATION_JOB_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "clients/job_file/job_file.h"

namespace troupe {

struct EvaluationOptions {
  // A Hugging Face directory, a checkpoint, or a folder of checkpoints, whose
  // newest is meant.
  std::string model;
  std::string tokens;                  // the token file
  // Where the losses of rows are asked for one by one, the token file is still
  // to be written: `count` windows, each of one row, for the longest of which
  // the sequence length is chosen.
  struct Rows {
    int64_t count = 0;  // 0: they are not
    int64_t longest = 0;
    std::string longest_is;  // where it comes from, for messages
  };
  Rows rows = {};
  std::vector<std::string> overrides;  // as JobFileOptions.overrides
  // What is left open: the number of workers that share the windows.
  int workers = 1;
};

// Longest window of a model of Hugging Face where nothing else is said: some
// are made for sequences that few machines have the memory for.
inline constexpr int kEvaluationLengthMax = 1024;

// A checkpoint gives model, sequence length, precision and how documents are
// read, as its job had them. InvalidArgument where the directory is neither, or
// a field of an override is wrong; NotFound where there is none.
absl::StatusOr<JobFile> MakeEvaluationJob(const EvaluationOptions& options);

// The model itself: of a folder of checkpoints the newest one, else `model`.
absl::StatusOr<std::string> NewestModel(const std::string& model);

}  // namespace troupe

#endif  // TROUPE_CLIENTS_CLI_EVALUATION_JOB_H_
