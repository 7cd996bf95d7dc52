// The style sheet of the HTML report: readable on a phone, in the dark and on paper.
#pragma once

namespace assay::report {

extern const char* const kPageStyle;

}  // namespace assay::report
