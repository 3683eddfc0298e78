#include "worker/engine/carried_files.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "proto/base/log.h"
#include "storage/checkpoint/hugging_face_files.h"
#include "storage/checkpoint/manifest.h"
#include "storage/dataset/make_tokenizer.h"
#include "storage/dataset/tokenizer_files.h"

namespace troupe {
namespace {

class Collection {
 public:
  bool Has(absl::string_view name) const { return Find(name) != nullptr; }
  std::string ContentOf(absl::string_view name) const {
    const CarriedFile* file = Find(name);
    return file == nullptr ? "" : file->bytes;
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
  const CarriedFile* Find(absl::string_view name) const {
    const auto found = std::find_if(
        files_.begin(), files_.end(),
        [&](const CarriedFile& file) { return file.name == name; });
    return found == files_.end() ? nullptr : &*found;
  }

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
  const std::string name = options.tokenizer.empty()
                               ? kTokenizerModelAsset
                               : TokenizerModelFile(options.tokenizer);
  collection.Add(path, LoadCarriedFile(name, path));
}

// A directory or checkpoint whose files go along with the model.
using Source = std::vector<std::pair<std::string, std::string>>;  // name, path

Source OfDirectory(const std::string& directory) {
  Source source;
  for (const char* name : kHuggingFaceFiles) {
    source.emplace_back(name, absl::StrCat(directory, "/", name));
  }
  return source;
}

Source OfCheckpoint(const std::string& checkpoint) {
  Source source;
  const absl::StatusOr<Manifest> manifest = ReadManifest(checkpoint);
  if (!manifest.ok()) {
    LogWarning(absl::StrCat("checkpoints will not carry what ", checkpoint,
                            " carries: ", manifest.status().message()));
    return source;
  }
  for (const ManifestFile& asset : manifest->assets) {
    source.emplace_back(asset.name, AssetPath(checkpoint, asset.name));
  }
  return source;
}

// All of them, but tokenizer files only where they belong to the tokens.
void AddOf(const Source& source, const std::string& tokenizer,
           Collection& collection) {
  TokenizerFiles files;
  std::vector<std::pair<std::string, absl::StatusOr<CarriedFile>>> loaded;
  for (const auto& [name, path] : source) {
    absl::StatusOr<CarriedFile> file = LoadCarriedFile(name, path);
    if (file.ok()) {
      if (name == kTokenizerModelAsset) files.model = file->bytes;
      if (name == "tokenizer.json") files.tokenizer = file->bytes;
      if (name == "tokenizer_config.json") files.config = file->bytes;
    }
    loaded.emplace_back(path, std::move(file));
  }
  const bool belong = BelongToTokens(
      files, {.tokenizer = tokenizer,
              .model = collection.ContentOf(kTokenizerModelAsset)});
  for (size_t i = 0; i < source.size(); ++i) {
    const std::string& name = source[i].first;
    const bool is_model = name == kTokenizerModelAsset &&
                          IsTokenizerModel(tokenizer, files.model);
    if (IsTokenizerFile(name) && !belong && !is_model) continue;
    if (!collection.Has(name)) {
      collection.Add(loaded[i].first, std::move(loaded[i].second));
    }
  }
}

}  // namespace

std::vector<CarriedFile> CollectCarriedFiles(
    const CarriedFilesOptions& options) {
  Collection collection;
  if (!options.tokens.empty()) AddOfTokens(options, collection);
  if (!options.hf.empty()) {
    AddOf(OfDirectory(options.hf), options.tokenizer, collection);
  }
  if (!options.resumed_from.empty()) {
    AddOf(OfCheckpoint(options.resumed_from), options.tokenizer, collection);
  }
  return collection.Take();
}

}  // namespace troupe
