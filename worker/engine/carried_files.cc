#include "worker/engine/carried_files.h"

#include <algorithm>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "proto/base/log.h"
#include "storage/checkpoint/hugging_face_files.h"
#include "storage/checkpoint/manifest.h"
#include "storage/dataset/make_tokenizer.h"

namespace troupe {
namespace {

class Collection {
 public:
  bool Has(absl::string_view name) const {
    return std::any_of(
        files_.begin(), files_.end(),
        [&](const CarriedFile& file) { return file.name == name; });
  }

  // Leaves out what is not there.
  void Add(const std::string& path, absl::StatusOr<CarriedFile> file) {
    if (file.ok()) {
      files_.push_back(*std::move(file));
    } else if (!absl::IsNotFound(file.status())) {
      LogWarning(absl::StrCat("checkpoints will not carry ", path, ": ",
                              file.status().message()));
    }
  }

  std::vector<CarriedFile> Take() { return std::move(files_); }

 private:
  std::vector<CarriedFile> files_;
};

void AddOfTokens(const CarriedFilesOptions& options, Collection& collection) {
  // Says, where the tokens have a tokenizer, what is wrong with its model.
  const absl::Status known =
      options.tokenizer.empty()
          ? absl::OkStatus()
          : LoadTokenizer(options.tokenizer, options.tokens).status();
  if (!known.ok()) {
    LogWarning(absl::StrCat("checkpoints will not carry the tokenizer: ",
                            known.message()));
    return;
  }
  // A file of that name is then another's.
  if (!options.tokenizer.empty() && !TokenizerHasModel(options.tokenizer)) {
    return;
  }
  const std::string path = TokenizerModelPath(options.tokens);
  collection.Add(path, LoadCarriedFile(kTokenizerModelAsset, path));
}

void AddOfDirectory(const std::string& directory, Collection& collection) {
  for (const char* name : kHuggingFaceFiles) {
    const std::string path = absl::StrCat(directory, "/", name);
    if (!collection.Has(name)) {
      collection.Add(path, LoadCarriedFile(name, path));
    }
  }
}

void AddOfCheckpoint(const std::string& checkpoint, Collection& collection) {
  const absl::StatusOr<Manifest> manifest = ReadManifest(checkpoint);
  if (!manifest.ok()) {
    LogWarning(absl::StrCat("checkpoints will not carry what ", checkpoint,
                            " carries: ", manifest.status().message()));
    return;
  }
  for (const ManifestFile& asset : manifest->assets) {
    const std::string path = AssetPath(checkpoint, asset.name);
    if (!collection.Has(asset.name)) {
      collection.Add(path, LoadCarriedFile(asset.name, path));
    }
  }
}

}  // namespace

std::vector<CarriedFile> CollectCarriedFiles(
    const CarriedFilesOptions& options) {
  Collection collection;
  if (!options.tokens.empty()) AddOfTokens(options, collection);
  if (!options.hf.empty()) AddOfDirectory(options.hf, collection);
  if (!options.resumed_from.empty()) {
    AddOfCheckpoint(options.resumed_from, collection);
  }
  return collection.Take();
}

}  // namespace troupe
