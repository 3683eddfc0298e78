// Whether the files of a corpus are what they are taken for: asked before
// tokens are made of them, so that hours later nothing is found that could be
// seen at once.
#ifndef TROUPE_STORAGE_CORPUS_CHECK_CORPUS_H_
#define TROUPE_STORAGE_CORPUS_CHECK_CORPUS_H_

#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "storage/corpus/corpus_files.h"

namespace troupe {

// Texts as storage/dataset/text_check.h says, compressed ones by their first
// MiB; of JSON lines that they are not binary. The standard input and pipes can
// be read once, so TextParts checks them while it reads them.
// InvalidArgument with the file, what it is and what to do.
absl::Status CheckCorpus(const std::vector<CorpusFile>& files);

// The same by the beginning of what a file unpacks to: by CheckedBytes of it,
// or all (`is_all`) where there are fewer.
size_t CheckedBytes(TextFormat format);
absl::Status CheckBeginning(const CorpusFile& file, absl::string_view begin,
                            bool is_all);

}  // namespace troupe

#endif  // TROUPE_STORAGE_CORPUS_CHECK_CORPUS_H_
