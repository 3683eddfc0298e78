#include "clients/hugging_face/export_model.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "clients/hugging_face/adapter_files.h"
#include "clients/hugging_face/config.h"
#include "clients/hugging_face/export_tokenizer.h"
#include "clients/hugging_face/merge_adapters.h"
#include "proto/base/process_state.h"
#include "proto/base/status.h"
#include "proto/plan/job_json.h"
#include "proto/plan/model.h"
#include "proto/plan/optimizer_states.h"
#include "proto/plan/slices.h"
#include "storage/checkpoint/adapter_files.h"
#include "storage/checkpoint/assets.h"
#include "storage/checkpoint/hugging_face_files.h"
#include "storage/checkpoint/hugging_face_weights.h"
#include "storage/checkpoint/safetensors_writer.h"
#include "storage/checkpoint/tensor_reader.h"
#include "storage/checkpoint/to_f32.h"
#include "storage/disk/directory.h"
#include "storage/disk/new_directory.h"
#include "storage/disk/new_file.h"
#include "storage/engine/make_engine.h"

namespace troupe {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kElementsAtOnce = int64_t{1} << 20;

int64_t BytesOf(const SafetensorsTensor& tensor) {
  return ElementCount(tensor.shape) * StoredDTypeBytes(tensor.dtype);
}

// The job that wrote it, with a resolved model, which Hugging Face has.
absl::StatusOr<JobSpec> JobOf(const TensorReader& checkpoint,
                              const std::string& path) {
  absl::StatusOr<JobSpec> job = ParseJobJson(checkpoint.manifest().job);
  if (!job.ok()) return Annotate(job.status(), path);
  ModelSpec& model = *job->mutable_model();
  RETURN_IF_ERROR(Annotate(ResolveModel(model), path));
  if (IsSynthetic(model)) {
    return absl::FailedPreconditionError(
        absl::StrCat(path,
                     ": a synthetic model is none of Hugging Face's; "
                     "export a checkpoint of another job"));
  }
  if (IsGraph(model)) {
    return absl::FailedPreconditionError(
        absl::StrCat(path,
                     ": a model of model.graph is none of Hugging Face's, "
                     "which knows no config.json for it; its parameters are in "
                     "the checkpoint's safetensors files, under their names"));
  }
  if (model.architecture() == "gpt2" && model.num_experts() > 0) {
    return absl::FailedPreconditionError(
        absl::StrCat(path,
                     ": is a gpt2 with experts, and transformers has no model "
                     "that would read it; its parameters are in the "
                     "checkpoint's safetensors files, under their names. "
                     "mixtral, olmoe, qwen2_moe, qwen3_moe and deepseek_v3 are "
                     "exported with their experts"));
  }
  return job;
}

// What is written of a checkpoint.
struct Contents {
  bool adapters = false;  // these alone, else the model
  UnitList list;          // with adapters, where the job has them
};

absl::StatusOr<Contents> ContentsOf(const JobSpec& job,
                                    const ExportOptions& options) {
  const TrainingSpec& training = job.training();
  if (options.merged && !training.has_lora()) {
    return absl::InvalidArgumentError(
        absl::StrCat(options.checkpoint,
                     ": is of a job without training.lora, so there are no "
                     "adapters to merge; leave out --merged"));
  }
  if (options.averages && options.merged) {
    return absl::InvalidArgumentError(
        absl::StrCat(options.checkpoint,
                     ": averages of adapters are exported as adapters; leave "
                     "out --merged, or --ema"));
  }
  if (options.averages && !job.optimizer().has_ema()) {
    return absl::InvalidArgumentError(
        absl::StrCat(options.checkpoint,
                     ": is of a job without optimizer.ema, so there are no "
                     "averages of its weights; leave out --ema"));
  }
  Contents contents = {.adapters = training.has_lora() && !options.merged};
  ASSIGN_OR_RETURN(
      contents.list,
      ModelUnits(job.model(),
                 {.sequences = 1,
                  .sequence_length = 1,
                  .lora = training.has_lora() ? &training.lora() : nullptr}));
  if (contents.adapters) {
    RETURN_IF_ERROR(
        Annotate(CheckPeftKnows(job, contents.list.units), options.checkpoint));
  }
  return contents;
}

// Parameters that share a tensor of Hugging Face's, in its order: runs of
// elements in turn. Or the one that has the tensor as a part, from `first` on.
struct Parts {
  std::vector<std::string> names;
  int64_t run = 0;
  int64_t first = 0;
};
using PartsByTensor = std::map<std::string, Parts>;

// PEFT's model has the other one's in itself.
std::string NameInFile(const Parameter& parameter, absl::string_view name) {
  return absl::StrCat(parameter.adapter() ? kAdapterPrefix : "", name);
}

// Adds the parameter under its name in the file.
void AddWhole(const Parameter& parameter, SafetensorsTensor tensor,
              PartsByTensor& parts, std::vector<SafetensorsTensor>& tensors) {
  const std::string name = NameInFile(parameter, tensor.name);
  if (name != tensor.name) {
    parts[name] = {.names = {tensor.name}, .run = ElementCount(tensor.shape)};
  }
  tensor.name = name;
  tensors.push_back(std::move(tensor));
}

// Adds the tensor that the parameter is a part of, with the first part.
void AddPart(const Parameter& parameter, SafetensorsTensor tensor,
             PartsByTensor& parts, std::vector<SafetensorsTensor>& tensors) {
  const Parameter::PartOf& part = parameter.part_of();
  const std::string name = NameInFile(parameter, part.name());
  Parts& shared = parts[name];
  shared.names.push_back(tensor.name);
  if (part.index() > 0) return;
  shared.run = ElementCount(tensor.shape) / tensor.shape[0] * part.rows();
  tensor.name = name;
  tensor.shape[0] *= part.parts();
  tensors.push_back(std::move(tensor));
}

// Adds the parameter once more under each name that files have it by.
void AddCopies(const Parameter& parameter, SafetensorsTensor tensor,
               PartsByTensor& parts, std::vector<SafetensorsTensor>& tensors) {
  const std::string name = tensor.name;
  for (const std::string& copy : parameter.also_in()) {
    tensor.name = copy;
    parts[copy] = {.names = {name}, .run = ElementCount(tensor.shape)};
    tensors.push_back(tensor);
  }
}

// Adds a tensor for each index of the parameter's first dim.
void AddEach(const Parameter& parameter, SafetensorsTensor tensor,
             PartsByTensor& parts, std::vector<SafetensorsTensor>& tensors) {
  const std::string name = tensor.name;
  const int64_t count = tensor.shape.front();
  tensor.shape.erase(tensor.shape.begin());
  const int64_t elements = ElementCount(tensor.shape);
  for (int64_t i = 0; i < count; ++i) {
    tensor.name = NameOfEach(parameter.each_in(), i);
    parts[tensor.name] = {
        .names = {name}, .run = elements, .first = i * elements};
    tensors.push_back(tensor);
  }
}

// That the checkpoint has it, as the model needs it.
absl::Status CheckStored(const Parameter& parameter,
                         const TensorReader& checkpoint,
                         const std::string& path) {
  const std::vector<int64_t> shape = WholeShape(parameter);
  const ManifestTensor* stored = checkpoint.Find(parameter.name());
  if (stored != nullptr && stored->shape == shape &&
      stored->dtype == StoredDType::kF32) {
    return absl::OkStatus();
  }
  return absl::DataLossError(
      absl::StrCat(path, ": has no tensor ", parameter.name(), " of F32[",
                   absl::StrJoin(shape, ", "), "], which its model needs"));
}

// The tensors to be written, of parameters that were checked against what the
// checkpoint holds; and what is to be put together.
absl::StatusOr<std::vector<SafetensorsTensor>> TensorsOf(
    const Contents& contents, const TensorReader& checkpoint,
    const ExportOptions& options, PartsByTensor& parts) {
  std::vector<SafetensorsTensor> tensors;
  for (const Unit& unit : contents.list.units) {
    for (const Parameter& parameter : unit.parameters()) {
      const bool of_training =
          parameter.has_load() && !parameter.load().of_model();
      if (contents.adapters && parameter.load().bias_rate() > 0) {
        return absl::InvalidArgumentError(absl::StrCat(
            options.checkpoint, ": ", parameter.name(),
            " was trained beside the adapters (model.experts.balance bias), "
            "and an adapter's files have no place for it; export with "
            "--merged, or train with another model.experts.balance"));
      }
      if (of_training && parameter.load().bias_rate() > 0) {
        return absl::InvalidArgumentError(absl::StrCat(
            options.checkpoint, ": ", parameter.name(),
            " chooses experts with a bias (model.experts.balance bias), which "
            "transformers' model of this kind does not have; train without it "
            "to export"));
      }
      if (of_training) continue;  // of no use without it
      RETURN_IF_ERROR(CheckStored(parameter, checkpoint, options.checkpoint));
      if (parameter.adapter() != contents.adapters) continue;
      // transformers keeps what chooses experts in f32.
      SafetensorsTensor tensor = {
          .name = parameter.name(),
          .dtype = parameter.has_load() ? StoredDType::kF32 : options.dtype,
          .shape = WholeShape(parameter)};
      AddCopies(parameter, tensor, parts, tensors);
      if (parameter.has_part_of()) {
        AddPart(parameter, std::move(tensor), parts, tensors);
      } else if (!parameter.each_in().empty()) {
        AddEach(parameter, std::move(tensor), parts, tensors);
      } else {
        AddWhole(parameter, std::move(tensor), parts, tensors);
      }
    }
  }
  return tensors;
}

using Files = std::vector<std::vector<SafetensorsTensor>>;

Files Divide(const std::vector<SafetensorsTensor>& tensors, int64_t bytes_max) {
  Files files(1);
  int64_t bytes = 0;
  for (const SafetensorsTensor& tensor : tensors) {
    if (bytes > 0 && bytes + BytesOf(tensor) > bytes_max) {
      files.emplace_back();
      bytes = 0;
    }
    bytes += BytesOf(tensor);
    files.back().push_back(tensor);
  }
  return files;
}

std::string FileName(const Contents& contents, size_t index, size_t count) {
  if (contents.adapters) return kAdapterWeightsFile;
  if (count == 1) return "model.safetensors";
  return absl::StrFormat("model-%05d-of-%05d.safetensors", index + 1, count);
}

// One run of an export: into `directory`, which is then renamed.
class Export {
 public:
  Export(const ExportOptions& options, const JobSpec& job,
         const Contents& contents, const TensorReader& checkpoint,
         const PartsByTensor& parts, std::string directory)
      : options_(options),
        job_(job),
        contents_(contents),
        checkpoint_(checkpoint),
        parts_(parts),
        directory_(std::move(directory)) {
    if (options.merged) {
      merged_.emplace(contents.list, job.training().lora(), checkpoint);
    }
  }

  absl::Status WriteWeights(const Files& files, int64_t total) {
    ASSIGN_OR_RETURN(const std::unique_ptr<IoEngine> io,
                     MakeIoEngine({.log = false}));
    total_ = total;
    nlohmann::json map = nlohmann::json::object();
    for (size_t i = 0; i < files.size(); ++i) {
      const std::string name = FileName(contents_, i, files.size());
      RETURN_IF_ERROR(WriteFile(*io, name, files[i]));
      for (const SafetensorsTensor& tensor : files[i]) map[tensor.name] = name;
    }
    if (files.size() == 1) return absl::OkStatus();
    const nlohmann::json index = {{"metadata", {{"total_size", total}}},
                                  {"weight_map", std::move(map)}};
    return ReplaceFile(
        absl::StrCat(directory_, "/model.safetensors.index.json"),
        absl::StrCat(index.dump(2), "\n"));
  }

  absl::Status WriteOthers() {
    if (contents_.adapters) {
      return ReplaceFile(absl::StrCat(directory_, "/", kAdapterConfigFile),
                         FormatAdapterConfig(job_, contents_.list));
    }
    std::string base;
    std::vector<CarriedFile> carried;
    for (const ManifestFile& asset : checkpoint_.manifest().assets) {
      ASSIGN_OR_RETURN(std::string bytes,
                       ReadCarriedFile(options_.checkpoint, asset.name));
      if (asset.name == kHuggingFaceConfig) {
        base = std::move(bytes);
      } else {
        carried.push_back({asset.name, std::move(bytes)});
      }
    }
    absl::StatusOr<ExportedTokenizer> tokenizer =
        ExportTokenizer(checkpoint_.manifest().tokenizer, std::move(carried));
    if (!tokenizer.ok()) {
      return Annotate(tokenizer.status(), options_.checkpoint);
    }
    for (const CarriedFile& file : tokenizer->files) {
      RETURN_IF_ERROR(
          ReplaceFile(absl::StrCat(directory_, "/", file.name), file.bytes));
    }
    return ReplaceFile(
        absl::StrCat(directory_, "/", kHuggingFaceConfig),
        FormatHuggingFaceConfig({.model = job_.model(),
                                 .dtype = options_.dtype == StoredDType::kBF16
                                              ? "bfloat16"
                                              : "float32",
                                 .base = base,
                                 .ids = tokenizer->ids}));
  }

 private:
  absl::Status WriteFile(IoEngine& io, const std::string& name,
                         const std::vector<SafetensorsTensor>& tensors) {
    ASSIGN_OR_RETURN(
        const std::unique_ptr<SafetensorsWriter> writer,
        SafetensorsWriter::Create(io, absl::StrCat(directory_, "/", name),
                                  tensors, {{"format", "pt"}}));
    for (const SafetensorsTensor& tensor : writer->header().tensors) {
      RETURN_IF_ERROR(WriteTensor(tensor, *writer));
    }
    return writer->Finish().status();
  }

  absl::Status WriteTensor(const SafetensorsTensor& tensor,
                           SafetensorsWriter& writer) {
    const int64_t elements = ElementCount(tensor.shape);
    for (int64_t at = 0; at < elements; at += kElementsAtOnce) {
      const int64_t count = std::min(kElementsAtOnce, elements - at);
      values_.resize(count);
      stored_.resize(count * StoredDTypeBytes(tensor.dtype));
      RETURN_IF_ERROR(Read(tensor.name, {.begin = at, .count = count}));
      RETURN_IF_ERROR(
          FromF32(tensor.dtype, values_.data(), count, stored_.data()));
      RETURN_IF_ERROR(
          writer.Append(tensor.name, {stored_.data(), stored_.size()}));
      written_ += static_cast<int64_t>(stored_.size());
      if (options_.progress) {
        RETURN_IF_ERROR(options_.progress(written_, total_));
      }
    }
    return absl::OkStatus();
  }

  // Into values_.
  absl::Status Read(const std::string& tensor, const FlatRange& range) {
    const auto found = parts_.find(tensor);
    if (found == parts_.end()) {
      return ReadParameter(tensor, range, values_.data());
    }
    const auto& [names, run, first] = found->second;
    const int64_t parts = static_cast<int64_t>(names.size());
    for (int64_t done = 0; done < range.count;) {
      const int64_t at = range.begin + done;
      const int64_t turn = at / run;
      const FlatRange piece = {
          .begin = first + turn / parts * run + at % run,
          .count = std::min(range.count - done, run - at % run)};
      RETURN_IF_ERROR(
          ReadParameter(names[turn % parts], piece, values_.data() + done));
      done += piece.count;
    }
    return absl::OkStatus();
  }

  absl::Status ReadParameter(const std::string& name, const FlatRange& range,
                             float* out) {
    if (merged_.has_value()) return merged_->ReadRange(name, range, out);
    // Frozen parameters have no average: they are it.
    const std::string average = StateTensorName(kAverageState, name);
    const bool averaged =
        options_.averages && checkpoint_.Find(average) != nullptr;
    return checkpoint_.ReadRange(averaged ? average : name, StoredDType::kF32,
                                 range, out);
  }

  const ExportOptions& options_;
  const JobSpec& job_;
  const Contents& contents_;
  const TensorReader& checkpoint_;
  const PartsByTensor& parts_;
  const std::string directory_;
  absl::optional<MergedWeights> merged_;
  int64_t total_ = 0;
  int64_t written_ = 0;
  std::vector<float> values_;
  std::vector<char> stored_;
};

absl::Status CheckFree(const std::string& path) {
  std::error_code error;
  if (!fs::exists(path, error)) return absl::OkStatus();
  if (fs::is_directory(path, error) && fs::is_empty(path, error)) {
    return absl::OkStatus();
  }
  return absl::AlreadyExistsError(
      absl::StrCat(path, ": is there already; remove it, or give another"));
}

// No other process's, on whichever host it writes there: those of one name may
// well have one process id, as in containers.
std::string Token() {
  const ProcessId self = Identify(getpid());
  return absl::StrCat(HostName(), "-", self.pid, "-", self.start_ticks);
}

// REQUIRES that `to` is free.
absl::Status WriteAside(const ExportOptions& options, const JobSpec& job,
                        const Contents& contents,
                        const TensorReader& checkpoint, const Files& files,
                        const PartsByTensor& parts, int64_t bytes) {
  const NewDirectory directory(options.to, Token());
  const MissingDirectories missing(ParentDirectory(options.to));
  // A program that loads a model takes all files that are there.
  absl::Status status = directory.Discard();
  if (status.ok()) status = directory.Make();
  status =
      Annotate(status, "--to must lie in a directory in which you may write");
  Export run(options, job, contents, checkpoint, parts, directory.aside());
  if (status.ok()) status = run.WriteWeights(files, bytes);
  if (status.ok()) status = run.WriteOthers();
  if (status.ok()) status = directory.Publish();
  // The first error is the one.
  if (!status.ok()) {
    directory.Discard().IgnoreError();
    missing.RemoveEmpty();
  }
  return status;
}

}  // namespace

absl::StatusOr<ExportedModel> ExportModel(const ExportOptions& options) {
  RETURN_IF_ERROR(CheckFree(options.to));
  ASSIGN_OR_RETURN(const std::unique_ptr<TensorReader> checkpoint,
                   TensorReader::Open(options.checkpoint));
  ASSIGN_OR_RETURN(const JobSpec job, JobOf(*checkpoint, options.checkpoint));
  ASSIGN_OR_RETURN(const Contents contents, ContentsOf(job, options));
  PartsByTensor parts;
  ASSIGN_OR_RETURN(const std::vector<SafetensorsTensor> tensors,
                   TensorsOf(contents, *checkpoint, options, parts));
  ExportedModel exported = {.step = checkpoint->manifest().step,
                            .adapters = contents.adapters};
  for (const SafetensorsTensor& tensor : tensors) {
    exported.parameters += ElementCount(tensor.shape);
    exported.bytes += BytesOf(tensor);
  }
  // PEFT reads one file.
  const Files files = contents.adapters
                          ? Files{tensors}
                          : Divide(tensors, options.file_bytes_max);
  exported.names_base = contents.adapters && NamesBase(job);
  exported.files = static_cast<int>(files.size());
  RETURN_IF_ERROR(WriteAside(options, job, contents, *checkpoint, files, parts,
                             exported.bytes));
  return exported;
}

}  // namespace troupe
