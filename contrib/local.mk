# Completions, pages and the AppArmor profile speak of the program by the name that it is installed by.
completions = contrib/completions/sbx.bash contrib/completions/_sbx contrib/completions/sbx.fish
EXTRA_DIST += $(completions) build-aux/rename

# sbx doctor names it.
apparmordir = $(pkgdatadir)/apparmor
dist_apparmor_DATA = contrib/apparmor/sbx

bash_completions = $(datadir)/bash-completion/completions
zsh_completions = $(datadir)/zsh/site-functions
fish_completions = $(datadir)/fish/vendor_completions.d
installed_name = `echo sbx | sed '$(transform)'`
rename = $(srcdir)/build-aux/rename '$(transform)'

install-data-hook:
	$(MKDIR_P) $(DESTDIR)$(bash_completions) $(DESTDIR)$(zsh_completions) $(DESTDIR)$(fish_completions)
	name=$(installed_name); put() { \
	  $(rename) <$(srcdir)/contrib/$$1 >"$(DESTDIR)$$2" && chmod 644 "$(DESTDIR)$$2"; }; \
	put completions/sbx.bash "$(bash_completions)/$$name" && put completions/_sbx "$(zsh_completions)/_$$name" && \
	put completions/sbx.fish "$(fish_completions)/$$name.fish" && put apparmor/sbx "$(apparmordir)/sbx"
	for page in $(dist_man_MANS); do \
	  name=`basename $$page`; section=$${name##*.}; name=`echo $${name%.*} | sed '$(transform)'`; \
	  $(rename) <$(srcdir)/$$page >"$(DESTDIR)$(mandir)/man$$section/$$name.$$section" || exit 1; \
	done

uninstall-hook:
	name=$(installed_name); rm -f "$(DESTDIR)$(bash_completions)/$$name" "$(DESTDIR)$(zsh_completions)/_$$name" \
	  "$(DESTDIR)$(fish_completions)/$$name.fish"

EXTRA_DIST += tests/installcheck
installcheck-local:
	$(srcdir)/tests/installcheck "$(DESTDIR)$(bindir)" "$(DESTDIR)$(mandir)" "$(installed_name)"
