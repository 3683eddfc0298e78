// Makes a checkpoint of a Hugging Face directory: its weights under the same
// names, as f32 at step 0, its config and tokenizer carried along. Any job with
// that model resumes from it, text can be generated from it.
#ifndef TROUPE_CLIENTS_HUGGING_FACE_IMPORT_MODEL_H_
#define TROUPE_CLIENTS_HUGGING_FACE_IMPORT_MODEL_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/job.pb.h"

namespace troupe {

struct ImportOptions {
  std::string from;  // the Hugging Face directory
  std::string to;    // of checkpoints; made where it is missing
  // Called now and then with the bytes written so far, and of all. An error
  // ends it, and is returned; then nothing of it is left.
  std::function<absl::Status(int64_t done, int64_t total)> progress;
};

struct ImportedModel {
  std::string checkpoint;  // <to>/step-00000000
  ModelSpec model;         // resolved
  int64_t parameters = 0;
  int64_t bytes = 0;
  // Names of the directory's tensors that the checkpoint does not have: of
  // layers for multi-token prediction.
  std::vector<std::string> left_out;
};

// Streams: whatever the model's size, it holds less than kImportBytesMax.
// Writes aside and renames, so that a checkpoint is there whole or not at all.
//
// Errors of the directory are those of OpenHuggingFaceModel.
inline constexpr int64_t kImportBytesMax = int64_t{32} << 20;
absl::StatusOr<ImportedModel> ImportModel(const ImportOptions& options);

}  // namespace troupe

#endif  // TROUPE_CLIENTS_HUGGING_FACE_IMPORT_MODEL_H_
