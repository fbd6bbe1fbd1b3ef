/* SPDX-License-Identifier: MIT */
/* One page that shows a snapshot, and its changes since an older one, which may
 * be NULL. Sums are in the pools of the documents. */
#ifndef REPORT_PAGE_DATA_H
#define REPORT_PAGE_DATA_H

#include "document.h"

#include <stdio.h>

void page_write(struct document *d, struct document *old, FILE *out);

/*
 * Writes its data, JSON that html/ read, and nobody else: an object that may
 * stand in a <script> element. Processes, mappings and changes are tables: an
 * array of the columns' names, and one for each row with null for unknown
 * values.
 */
void page_data_write(struct document *d, struct document *old, FILE *out);

/* The page around its data: html/page.html with its styles and scripts.
 * html/embed makes the source when the program is built. */
extern const unsigned char page_head[], page_tail[];
extern const size_t page_head_size, page_tail_size;

#endif
