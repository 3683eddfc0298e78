#include "worker/engine/text_generation.h"

#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "proto/plan/job_json.h"
#include "proto/plan/text_parts.h"
#include "storage/checkpoint/assets.h"
#include "storage/checkpoint/checkpoint_dir.h"
#include "storage/checkpoint/load_tensors.h"
#include "storage/checkpoint/manifest.h"
#include "storage/dataset/hugging_face/tokenizer.h"
#include "storage/dataset/make_tokenizer.h"
#include "storage/dataset/sentencepiece/tokenizer.h"
#include "storage/engine/make_engine.h"
#include "worker/engine/carried_files.h"
#include "worker/engine/end_of_text.h"
#include "worker/rank/into_tier.h"
#include "worker/rank/tier_port.h"
#include "worker/rank/unit_state.h"

namespace troupe {
namespace {

// The flat buffers of the units that a rank holds.
struct Weights {
  std::vector<ArenaBlock> blocks;
  std::vector<void*> pointers;  // by unit; null for the others
};

absl::StatusOr<Weights> LoadWeights(const CheckpointToLoad& checkpoint,
                                    const TextRequest& request, Device& device,
                                    Arena& arena, const OnBytesMoved& moved) {
  const TextPlan& plan = request.plan;
  const MeshPlace place = {.mesh = &plan.mesh(), .rank = request.rank};
  TierPort port(device);
  Weights weights;
  weights.pointers.resize(plan.units_size(), nullptr);
  std::vector<TensorToLoad> tensors;
  for (const int u : UnitsOfText(plan, request.rank)) {
    const Unit& unit = plan.units(u);
    const int64_t bytes = unit.flat_elements() * sizeof(float);
    ASSIGN_OR_RETURN(ArenaBlock block, arena.Allocate("parameters", bytes));
    device.Zero(block.data(), bytes);  // what is padding stays so
    for (const StateTensor& tensor : UnitStateTensors(
             OptimizerSpec(), unit, {.parameters = block.data()}, place)) {
      tensors.push_back(IntoTier(tensor, port));
    }
    weights.pointers[u] = block.data();
    weights.blocks.push_back(std::move(block));
  }
  ASSIGN_OR_RETURN(CheckpointLoad load,
                   CheckpointLoad::Of(checkpoint, tensors));
  ASSIGN_OR_RETURN(const std::unique_ptr<IoEngine> io,
                   MakeIoEngine({.log = false}));
  RETURN_IF_ERROR(load.Run(*io, moved));
  return weights;
}

ModelPart PartOf(const TextRequest& request, const Weights& weights,
                 DecodingPeers* peers) {
  const TextPlan& plan = request.plan;
  const Stage& stage = StageOfText(plan, request.rank);
  ModelPart part = {.runs = {{stage.unit(), stage.unit() + stage.unit_count()}},
                    .place = {.mesh = &plan.mesh(), .rank = request.rank},
                    .peers = peers};
  part.units.units = {plan.units().begin(), plan.units().end()};
  part.weights = WeightsAt(part.units.units, weights.pointers);
  part.units.tables = {plan.tables().begin(), plan.tables().end()};
  part.units.batch = plan.batch();
  return part;
}

// Nothing where the checkpoint does not carry such a file.
absl::StatusOr<std::optional<std::string>> Carried(
    const std::string& checkpoint, const std::string& name) {
  if (name.empty()) return std::nullopt;
  absl::StatusOr<std::string> bytes = ReadCarriedFile(checkpoint, name);
  if (absl::IsNotFound(bytes.status())) return std::nullopt;
  RETURN_IF_ERROR(bytes.status());
  return std::make_optional(*std::move(bytes));
}

// The data of others (Megatron-LM, llm.c) does not say by what it was made, and
// a model that was imported has none: then the files alone decide.
absl::StatusOr<std::unique_ptr<Tokenizer>> TokenizerOfFiles(
    const std::string& checkpoint) {
  ASSIGN_OR_RETURN(const std::optional<std::string> json,
                   Carried(checkpoint, "tokenizer.json"));
  if (json.has_value()) {
    ASSIGN_OR_RETURN(const std::optional<std::string> config,
                     Carried(checkpoint, "tokenizer_config.json"));
    return MakeHuggingFaceTokenizer(*json, config.value_or(""));
  }
  ASSIGN_OR_RETURN(const std::optional<std::string> model,
                   Carried(checkpoint, kTokenizerModelAsset));
  if (model.has_value()) return MakeSentencePieceTokenizer(*model);
  return absl::NotFoundError("its tokenizer is not known");
}

// By the name in the manifest, with the model that the checkpoint carries.
absl::StatusOr<std::unique_ptr<Tokenizer>> NamedTokenizer(
    const std::string& checkpoint, const std::string& name) {
  ASSIGN_OR_RETURN(const std::optional<std::string> model,
                   Carried(checkpoint, TokenizerModelFile(name)));
  return MakeTokenizer(name, model);
}

absl::StatusOr<std::unique_ptr<Tokenizer>> TokenizerOf(
    const std::string& checkpoint, const Manifest& manifest) {
  absl::StatusOr<std::unique_ptr<Tokenizer>> tokenizer =
      manifest.tokenizer.empty()
          ? TokenizerOfFiles(checkpoint)
          : NamedTokenizer(checkpoint, manifest.tokenizer);
  if (tokenizer.ok()) return tokenizer;
  if (absl::IsDataLoss(tokenizer.status())) return tokenizer.status();
  return absl::FailedPreconditionError(
      absl::StrCat(tokenizer.status().message(),
                   "; give the prompt as token ids: --prompt-ids"));
}

}  // namespace

absl::Status ContinueText(const TextRequest& request, Device& device,
                          const TierArenas& arenas, const TextSink& sink,
                          TextRanks* peers) {
  const std::string context = absl::StrCat("checkpoint ", request.checkpoint);
  const absl::StatusOr<Manifest> read = ReadCheckpoint(request.checkpoint);
  if (!read.ok()) return Annotate(read.status(), context);
  const Manifest& manifest = *read;
  if (!request.made.empty() && MadeText(manifest) != request.made) {
    return absl::FailedPreconditionError(
        absl::StrCat(context, " is another one here (", MadeText(manifest),
                     ") than the one that is meant (", request.made,
                     "); all workers must see the same directory"));
  }
  if (request.plan.stages().empty()) {
    return absl::InvalidArgumentError(
        "the text has no plan; scheduler and worker must be of one build");
  }
  // Ids need no tokenizer; where there is one, they come with their text.
  const absl::StatusOr<std::unique_ptr<Tokenizer>> tokenizer =
      TokenizerOf(request.checkpoint, manifest);
  std::vector<int32_t> prompt = request.prompt_ids;
  if (prompt.empty()) {
    if (!tokenizer.ok()) return Annotate(tokenizer.status(), context);
    RETURN_IF_ERROR((*tokenizer)->Encode(request.prompt, prompt));
  }

  std::set<int32_t> end;
  if (!request.ignore_eos) {
    absl::StatusOr<std::set<int32_t>> said =
        EndOfTextTokensOf(request.checkpoint, manifest, request.plan.model(),
                          tokenizer.ok() ? tokenizer->get() : nullptr);
    if (!said.ok()) return Annotate(said.status(), context);
    end = *std::move(said);
  }

  ASSIGN_OR_RETURN(Arena * arena, arenas.Find(DEVICE));
  absl::Status heard;
  absl::StatusOr<Weights> weights =
      LoadWeights({request.checkpoint, manifest}, request, device, *arena,
                  [&](uint64_t) { return heard = sink(TextPiece()); });
  RETURN_IF_ERROR(heard);
  if (!weights.ok()) return Annotate(weights.status(), context);
  ASSIGN_OR_RETURN(const std::unique_ptr<Generator> generator,
                   Generator::Create(device, request.plan.model(),
                                     PartOf(request, *weights, peers)));
  RETURN_IF_ERROR(sink({.loaded = true}));
  if (peers != nullptr) RETURN_IF_ERROR(peers->Meet());

  GenerateOptions sampling = request.sampling;
  sampling.go_on = [&sink] { return sink(TextPiece()); };
  RETURN_IF_ERROR(generator->Start(prompt, sampling));
  const bool says_text = request.rank == 0 && tokenizer.ok();
  return DrawText(*generator,
                  {.tokenizer = says_text ? tokenizer->get() : nullptr,
                   .tokens_max = request.max_new_tokens,
                   .end = std::move(end)},
                  sink);
}

absl::StatusOr<CheckpointOrigin> OriginOf(const std::string& checkpoint) {
  const std::string context = absl::StrCat("checkpoint ", checkpoint);
  const absl::StatusOr<Manifest> manifest = ReadCheckpoint(checkpoint);
  if (!manifest.ok()) return Annotate(manifest.status(), context);
  absl::StatusOr<JobSpec> job = ParseJobJson(manifest->job);
  if (!job.ok()) return Annotate(job.status(), context);
  return CheckpointOrigin{.job = *std::move(job), .made = MadeText(*manifest)};
}

}  // namespace troupe
