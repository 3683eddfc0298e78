#include "worker/model/generator.h"

#include <algorithm>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "ops/reduce.h"
#include "ops/sample.h"
#include "proto/base/check.h"
#include "proto/base/philox.h"
#include "proto/base/status.h"
#include "proto/plan/model.h"
#include "proto/plan/model_fields.h"
#include "worker/layers/operand_place.h"

namespace troupe {

// What the generator allocates, for as long as it lives.
struct Generator::Memory {
  explicit Memory(Device& device) : device(device) {}
  ~Memory() {
    for (void* memory : all) device.Free(memory);
  }
  absl::StatusOr<void*> Allocate(int64_t bytes) {
    if (bytes == 0) return nullptr;
    ASSIGN_OR_RETURN(void* memory, device.Allocate(bytes));
    all.push_back(memory);
    return memory;
  }

  Device& device;
  std::vector<void*> all;
  std::vector<void*> caches;  // by unit of the part
  void* workspace = nullptr;
  void* tokens = nullptr;      // i32 [kDecodeTokensMax]
  void* input = nullptr;       // [kDecodeTokensMax, width]
  void* output = nullptr;      // the same
  void* logits = nullptr;      // [vocab]
  void* f32_logits = nullptr;  // the same, where `logits` is of another dtype
};

std::vector<UnitWeights> WeightsAt(const std::vector<Unit>& units,
                                   const std::vector<void*>& flat) {
  CHECK_EQ(units.size(), flat.size());
  std::vector<UnitWeights> weights(units.size());
  for (size_t u = 0; u < units.size(); ++u) {
    weights[u].own = flat[u];
    if (units[u].tied_size() > 0) {
      weights[u].tied = flat[units[u].tied(0).unit()];
    }
  }
  return weights;
}

absl::StatusOr<std::unique_ptr<Generator>> Generator::Create(
    Device& device, const ModelSpec& model,
    const std::vector<void*>& parameters, ElementType dtype) {
  // Decoding has its own shapes; this one only completes the units.
  ASSIGN_OR_RETURN(UnitList units, ModelUnits(model, {.sequences = 1,
                                                      .sequence_length = 1,
                                                      .dtype = dtype}));
  const int end = static_cast<int>(units.units.size());
  std::vector<UnitWeights> weights = WeightsAt(units.units, parameters);
  return Create(device, model,
                {.units = std::move(units),
                 .runs = {{0, end}},
                 .weights = std::move(weights)});
}

absl::StatusOr<std::unique_ptr<Generator>> Generator::Create(
    Device& device, const ModelSpec& model, ModelPart part) {
  CHECK_EQ(part.units.units.size(), part.weights.size());
  CHECK(!part.runs.empty()) << "a rank without a unit";
  std::vector<std::unique_ptr<DecodingUnit>> units;
  for (const UnitRun& run : part.runs) {
    CHECK(run.begin < run.end) << "a run without a unit";
    for (int u = run.begin; u < run.end; ++u) {
      ASSIGN_OR_RETURN(std::unique_ptr<DecodingUnit> unit,
                       DecodingUnit::Create(part.units, u, part.place));
      units.push_back(std::move(unit));
    }
  }
  const DType dtype = units.back()->dtype();
  auto generator =
      absl::WrapUnique(new Generator(device, model, std::move(part), dtype));
  generator->units_ = std::move(units);
  RETURN_IF_ERROR(generator->Allocate());
  return generator;
}

Generator::Generator(Device& device, const ModelSpec& model, ModelPart part,
                     DType dtype)
    : device_(device),
      model_(model),
      part_(std::move(part)),
      context_(part_.positions > 0
                   ? std::min<int64_t>(part_.positions,
                                       LongestSequenceOf(model).positions)
                   : LongestSequenceOf(model).positions),
      dtype_(dtype) {}

Generator::~Generator() = default;

absl::Status Generator::Allocate() {
  memory_ = std::make_unique<Memory>(device_);
  const int64_t activation_bytes = DecodingUnit::kDecodeTokensMax *
                                   model_.hidden_size() * DTypeBytes(dtype_);
  int64_t workspace_bytes = 0;
  for (const auto& unit : units_) {
    workspace_bytes = std::max(workspace_bytes, unit->workspace_bytes());
    ASSIGN_OR_RETURN(void* cache,
                     memory_->Allocate(unit->CacheBytes(context_)));
    memory_->caches.push_back(cache);
  }
  ASSIGN_OR_RETURN(memory_->workspace, memory_->Allocate(workspace_bytes));
  ASSIGN_OR_RETURN(
      memory_->tokens,
      memory_->Allocate(DecodingUnit::kDecodeTokensMax * sizeof(int32_t)));
  ASSIGN_OR_RETURN(memory_->input, memory_->Allocate(activation_bytes));
  ASSIGN_OR_RETURN(memory_->output, memory_->Allocate(activation_bytes));
  logits_.resize(model_.vocab_size());
  if (!part_.has_logits()) return absl::OkStatus();
  ASSIGN_OR_RETURN(memory_->logits,
                   memory_->Allocate(model_.vocab_size() * DTypeBytes(dtype_)));
  if (dtype_ != DType::kF32) {
    ASSIGN_OR_RETURN(memory_->f32_logits,
                     memory_->Allocate(model_.vocab_size() * sizeof(float)));
  }
  return absl::OkStatus();
}

absl::Status Generator::Start(absl::Span<const int32_t> prompt,
                              const GenerateOptions& options) {
  if (prompt.empty()) {
    return absl::InvalidArgumentError(
        "the prompt is empty; give at least one token");
  }
  for (size_t i = 0; i < prompt.size(); ++i) {
    if (prompt[i] >= 0 && prompt[i] < model_.vocab_size()) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "token ", prompt[i], " at place ", i,
        " of the prompt is not in the model's vocabulary of ",
        model_.vocab_size(), "; was the text made with another tokenizer?"));
  }
  options_ = options;
  text_.assign(prompt.begin(), prompt.end());
  cached_ = 0;
  drawn_ = 0;
  return Extend();
}

int32_t Generator::Sample() const {
  const PhiloxStream stream = {.seed = options_.seed,
                               .purpose = RandomPurpose::kSampling};
  return SampleToken(logits_,
                     {.temperature = static_cast<float>(options_.temperature),
                      .top_k = options_.top_k,
                      .uniform = PhiloxUniform(PhiloxUint32(stream, drawn_))});
}

absl::StatusOr<int32_t> Generator::Next() {
  CHECK(!text_.empty()) << "Next before Start";
  int32_t token = part_.has_logits() ? Sample() : 0;
  if (part_.peers != nullptr) {
    ASSIGN_OR_RETURN(token, part_.peers->Share(token));
  }
  ++drawn_;
  text_.push_back(token);
  RETURN_IF_ERROR(Extend());
  return token;
}

absl::Status Generator::Extend() {
  if (static_cast<int64_t>(text_.size()) > context_) {
    const int64_t kept = std::max<int64_t>(context_ / 2, 1);
    text_.erase(text_.begin(), text_.end() - kept);
    cached_ = 0;
  }
  const int64_t tokens = text_.size();
  while (true) {
    RETURN_IF_ERROR(DecodeChunk(
        std::min(tokens - cached_, DecodingUnit::kDecodeTokensMax)));
    RETURN_IF_ERROR(device_.Synchronize());
    if (cached_ == tokens) return ReadLogits();
    if (options_.go_on != nullptr) RETURN_IF_ERROR(options_.go_on());
  }
}

absl::Status Generator::ReadLogits() {
  if (!part_.has_logits()) return absl::OkStatus();
  const void* logits = memory_->logits;
  if (dtype_ != DType::kF32) {
    const int64_t vocab = model_.vocab_size();
    Copy(device_, {.x = Tensor(memory_->logits, dtype_, {vocab}),
                   .y = Tensor(memory_->f32_logits, DType::kF32, {vocab})});
    logits = memory_->f32_logits;
  }
  device_.CopyToHost(logits_.data(), logits, logits_.size() * sizeof(float));
  return device_.Synchronize();
}

absl::Status Generator::DecodeChunk(int64_t count) {
  device_.CopyFromHost(memory_->tokens, text_.data() + cached_,
                       count * sizeof(int32_t));
  const auto input = [&] {
    return Tensor(memory_->input, dtype_, {count, model_.hidden_size()});
  };
  const int units = static_cast<int>(part_.units.units.size());
  int index = 0;
  for (const UnitRun& run : part_.runs) {
    if (run.begin > 0) {
      RETURN_IF_ERROR(part_.peers->Receive(run.begin, input()));
    }
    for (int u = run.begin; u < run.end; ++u) {
      RETURN_IF_ERROR(DecodeUnit(index++, u, count));
    }
    if (run.end < units) {
      RETURN_IF_ERROR(part_.peers->HandOn(run.end, input()));
    }
  }
  cached_ += count;
  return absl::OkStatus();
}

absl::Status Generator::DecodeUnit(int index, int unit, int64_t count) {
  if (part_.peers != nullptr) {
    RETURN_IF_ERROR(part_.peers->BringWeights(unit));
  }
  const bool last = unit + 1 == static_cast<int>(part_.units.units.size());
  RETURN_IF_ERROR(units_[index]->Decode(
      device_, context_,
      {.position = cached_,
       .count = count,
       .tokens = static_cast<const int32_t*>(memory_->tokens),
       .input = memory_->input,
       .output = last ? memory_->logits : memory_->output,
       .cache = memory_->caches[index],
       .workspace = memory_->workspace,
       .parameters = part_.weights[unit].own,
       .tied_parameters = part_.weights[unit].tied,
       .peers = part_.peers}));
  std::swap(memory_->input, memory_->output);
  return absl::OkStatus();
}

}  // namespace troupe
