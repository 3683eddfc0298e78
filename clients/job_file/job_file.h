// The job file: YAML onto JobSpec. What a user gets wrong is refused with the
// place, and what the scheduler refuses later is brought back to that place.
//
//   ASSIGN_OR_RETURN(JobFile job, LoadJobFile({.path = "job.yaml"}));
//   absl::Status refused = client.Submit(job.spec)...;   // parallelism.data:
//   ... return job.Locate(refused);              // job.yaml:14:9:
//   parallelism.data: ...
#ifndef TROUPE_CLIENTS_JOB_FILE_JOB_FILE_H_
#define TROUPE_CLIENTS_JOB_FILE_JOB_FILE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "clients/job_file/fill_message.h"
#include "proto/job.pb.h"

namespace troupe {

struct JobFileOptions {
  std::string path;
  std::vector<std::string> overrides;  // "optimizer.lr=1e-3", in order
};

struct JobFile {
  JobSpec spec;           // as written: defaults are the planner's
  std::string path;       // as the user gave it
  PositionMap positions;  // of every field that was written

  // Puts the place in front of an error whose message begins with a field's
  // path, "training.steps: ..."; the nearest section that was written where the
  // field was not. Any other status is returned as it is.
  absl::Status Locate(const absl::Status& status) const;
};

// Reads the file, and those of model.graph and model.experts.load_file, and
// applies the overrides. Relative paths among the fields (model.hf, these two,
// data.tokens, training.lora.adapter, checkpoint.directory and resume, those of
// metrics) become absolute: those in the file from the file's folder, those in
// an override from the current one.
// Errors: NotFound for the file, else InvalidArgument as in FillMessage.
absl::StatusOr<JobFile> LoadJobFile(const JobFileOptions& options);

// The same on a text, but that no other file is read; `folder` is absolute.
struct JobText {
  std::string name;    // for messages, "job.yaml"
  std::string folder;  // from which its relative paths start
  std::string text;
  std::vector<std::string> overrides;
};
absl::StatusOr<JobFile> ParseJob(const JobText& job);

}  // namespace troupe

#endif  // TROUPE_CLIENTS_JOB_FILE_JOB_FILE_H_
