// Makes a Hugging Face directory of a checkpoint, one that transformers'
// from_pretrained loads: config.json, the weights as safetensors (in several
// files with an index where they are large), the tokenizer by which it was
// trained (export_tokenizer.h), and the generation config that the checkpoint
// carries.
//
// Of a job with adapters (training.lora) it makes a directory that PEFT's
// PeftModel.from_pretrained loads, of the adapters alone: adapter_config.json
// and adapter_model.safetensors. Or, with `merged`, the model's with the
// adapters added to its weights (merge_adapters.h).
#ifndef TROUPE_CLIENTS_HUGGING_FACE_EXPORT_MODEL_H_
#define TROUPE_CLIENTS_HUGGING_FACE_EXPORT_MODEL_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "storage/checkpoint/stored_dtype.h"

namespace troupe {

struct ExportOptions {
  std::string checkpoint;  // the directory of one, <dir>/step-...
  std::string to;          // must not exist, or be empty
  StoredDType dtype = StoredDType::kF32;      // or kBF16, rounded to nearest
  int64_t file_bytes_max = int64_t{5} << 30;  // of weights; a tensor is whole
  bool merged = false;  // adapters into the model's weights
  bool averages = false;  // of trained weights their average (optimizer.ema)
  // Called now and then with the bytes written so far, and of all. An error
  // ends it, and is returned; then nothing of it is left.
  std::function<absl::Status(int64_t done, int64_t total)> progress;
};

struct ExportedModel {
  int64_t step = 0;         // of the checkpoint
  bool adapters = false;    // these alone
  bool names_base = false;  // adapter_config.json says of which model
  int64_t parameters = 0;   // that were written
  int64_t bytes = 0;
  int files = 0;  // of weights
};

// Streams: whatever the model's size, it holds less than kExportBytesMax, and,
// merging, twice the adapter of a layer. Appears whole or not at all
// (storage/disk/new_directory.h). AlreadyExists where `to` has content;
// NotFound, DataLoss or InvalidArgument, with the file, for a checkpoint that
// is none, damaged or of a model that it does not describe, for `merged`
// without adapters, and for `averages` without optimizer.ema or with `merged`.
inline constexpr int64_t kExportBytesMax = int64_t{32} << 20;
absl::StatusOr<ExportedModel> ExportModel(const ExportOptions& options);

}  // namespace troupe

#endif  // TROUPE_CLIENTS_HUGGING_FACE_EXPORT_MODEL_H_
