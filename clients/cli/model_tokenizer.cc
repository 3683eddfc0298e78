#include "clients/cli/model_tokenizer.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "storage/checkpoint/assets.h"
#include "storage/checkpoint/manifest.h"
#include "storage/dataset/make_tokenizer.h"
#include "storage/dataset/open_tokenizer.h"
#include "storage/disk/path_calls.h"

namespace troupe {
namespace {

constexpr char kTokenizerConfig[] = "tokenizer_config.json";

bool IsThere(const std::string& path) {
  struct stat info;
  return StatPath(path, &info) == 0;
}

std::string Within(const std::string& folder, absl::string_view name) {
  return absl::StrCat(folder, "/", name);
}

struct TokenizerSource {
  std::unique_ptr<Tokenizer> tokenizer;
  std::string model;   // the bytes that it is made of
  std::string config;  // tokenizer_config.json; empty: there is none
};

// A file, or a folder that has one.
absl::StatusOr<TokenizerSource> OpenSource(const std::string& path) {
  ASSIGN_OR_RETURN(OpenedTokenizer opened, OpenTokenizer(path));
  TokenizerSource source = {.tokenizer = std::move(opened.tokenizer),
                            .model = std::move(opened.model)};
  const std::string config = Within(path, kTokenizerConfig);
  if (IsThere(config)) {
    ASSIGN_OR_RETURN(source.config, ReadTokenizerModel(config));
  }
  return source;
}

// What a checkpoint carries, by the name that its manifest gives.
absl::StatusOr<TokenizerSource> OpenCarried(const std::string& checkpoint) {
  ASSIGN_OR_RETURN(const Manifest manifest,
                   ReadManifest(checkpoint, ManifestPart::kWithoutTensors));
  const std::string& name = manifest.tokenizer;
  if (name.empty()) return OpenSource(Within(checkpoint, kAssetsFolder));
  TokenizerSource source;
  if (TokenizerHasModel(name)) {
    ASSIGN_OR_RETURN(source.model,
                     ReadCarriedFile(checkpoint, TokenizerModelFile(name)));
  }
  ASSIGN_OR_RETURN(source.tokenizer, MakeTokenizer(name, source.model));
  absl::StatusOr<std::string> config =
      ReadCarriedFile(checkpoint, kTokenizerConfig);
  if (config.ok()) source.config = *std::move(config);
  if (config.ok() || absl::IsNotFound(config.status())) return source;
  return config.status();
}

absl::StatusOr<TokenizerSource> OpenSourceOf(
    const ModelTokenizerOptions& options) {
  if (options.tokenizer == "bytes") {
    TokenizerSource bytes;
    ASSIGN_OR_RETURN(bytes.tokenizer, MakeTokenizer(options.tokenizer));
    return bytes;
  }
  if (!options.tokenizer.empty()) return OpenSource(options.tokenizer);
  absl::StatusOr<TokenizerSource> source =
      IsThere(Within(options.model, kManifestFile)) ? OpenCarried(options.model)
                                                    : OpenSource(options.model);
  if (!absl::IsNotFound(source.status())) return source;
  return absl::NotFoundError(
      absl::StrCat(source.status().message(),
                   "; give the model's tokenizer by --tokenizer: bytes, a "
                   "tokenizer.json, a tokenizer.model, or a folder with one"));
}

}  // namespace

absl::StatusOr<ModelTokenizer> OpenModelTokenizer(
    const ModelTokenizerOptions& options) {
  ASSIGN_OR_RETURN(TokenizerSource source, OpenSourceOf(options));
  ModelTokenizer opened;
  const std::string& place =
      options.tokenizer.empty() ? options.model : options.tokenizer;
  const absl::StatusOr<BosRule> rule = FindBosRule(
      {.model = source.model, .config = source.config}, *source.tokenizer);
  // A caller that leaves BOS out does not depend on the model's rule.
  if (rule.ok()) {
    opened.bos = *rule;
  } else if (options.adds_bos.value_or(true)) {
    return Annotate(
        absl::Status(rule.status().code(),
                     absl::StrCat(rule.status().message(),
                                  "; mend the file, or leave BOS out with "
                                  "--no-bos")),
        place);
  }
  if (options.adds_bos.value_or(false) && opened.bos.tokens.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--bos: ", place, ": the tokenizer ", source.tokenizer->name(),
        " has no BOS token; leave the flag out"));
  }
  opened.bos.adds = options.adds_bos.value_or(opened.bos.adds);
  opened.tokenizer = std::move(source.tokenizer);
  return opened;
}

}  // namespace troupe
