// Whether libraries are compiled with the headers that were precompiled for
// them: this is one, though only a test has it.
#ifndef TROUPE_TESTS_STYLE_PRECOMPILED_H_
#define TROUPE_TESTS_STYLE_PRECOMPILED_H_

namespace troupe {

// True with --config=clang, too, which precompiles none.
bool LibrariesTakePrecompiledHeaders();

}  // namespace troupe

#endif  // TROUPE_TESTS_STYLE_PRECOMPILED_H_
