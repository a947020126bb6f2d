package main

import "fmt"

const (
	addTags           = "AddTagsToStream"
	removeTags        = "RemoveTagsFromStream"
	listTagsForStream = "ListTagsForStream"
)

// taggedScene has the answers of the tag operations, in that order.
type taggedScene struct {
	added, removed  *answer
	all, page, rest object // lists after adding
	after           object // and after removing
	tooMany         *answer
}

func (c *check) tagged() taggedScene {
	return stage(c, "tags", func(c *check) (s taggedScene) {
		name := c.settings().name
		defer c.alone()()
		s.added = c.call(addTags, object{"StreamName": name, "Tags": object{
			"a": "first", "born": "again", "ü0 _.": "x", "/=+-@": "y",
		}})
		list := func(members object) object {
			return c.call(listTagsForStream, object{"StreamName": name}.with(members)).value
		}
		s.all = list(nil)
		s.page = list(object{"Limit": 1})
		s.rest = list(object{"ExclusiveStartTagKey": s.page.text("Tags.0.Key")})
		s.removed = c.call(removeTags, object{
			"StreamName": name, "TagKeys": []string{"ü0 _.", "/=+-@", "not there"},
		})
		s.after = list(nil)
		many := object{}
		for i := range 49 {
			many[fmt.Sprintf("many-%d", i)] = ""
		}
		s.tooMany = c.call(addTags, object{"StreamName": name, "Tags": many})
		return s
	})
}

func tagFacts() []fact {
	invalid := "Some tags contain invalid characters. Valid characters: Unicode letters, digits, " +
		"white space, _ . / = + - % @."
	refused := func(id, says, key string) fact {
		return fact{
			"remove-tags-from-stream/" + id, removeTags, says, kinesalite("removeTagsFromStream"),
			nothing,
			func(c *check) {
				c.refused(removeTags, object{"StreamName": c.main().name, "TagKeys": []string{key}},
					"InvalidArgumentException", invalid)
			},
		}
	}
	return append(tagLists(), []fact{
		refused("semicolon", "A key with a semicolon is refused.", "abc;def"),
		refused("tab", "A key with a tab is refused.", "abc\tdef"),
		refused("newline", "A key with a newline is refused.", "abc\ndef"),
		refused("comma", "A key with a comma is refused.", "abc,def"),
		{
			"remove-tags-from-stream/percent", removeTags,
			"A key with a percent sign is refused, with another text.",
			kinesalite("removeTagsFromStream"), nothing, func(c *check) {
				c.refused(removeTags, object{
					"StreamName": c.main().name,
					"TagKeys":    []string{"abc%def"},
				},
					"InvalidArgumentException",
					"Failed to remove tags from "+c.under(c.main().name)+
						" because some tags contained illegal characters. The allowed characters "+
						"are "+
						"Unicode letters, white-spaces, '_',',','/','=','+','-','@'.")
			},
		},
		{
			"add-tags-to-stream/semicolon", addTags, "A key with a semicolon is refused.",
			kinesalite("addTagsToStream"), nothing,
			func(c *check) {
				c.refused(addTags, object{"StreamName": c.main().name, "Tags": object{"a;b": ""}},
					"InvalidArgumentException", invalid)
			},
		},
		{
			"add-tags-to-stream/colon", addTags, "A colon may be in keys and values.",
			onPage("Developer Guide: Tag your streams"), nothing, func(c *check) {
				c.ok(addTags, object{
					"StreamName": c.reading().name, "Tags": object{"a:b": "c:d"},
				})
			},
		},
		{
			"add-tags-to-stream/reserved", addTags, "Keys that begin with aws: are refused.",
			onPage("Developer Guide: Tag your streams"), nothing, func(c *check) {
				c.refused(addTags, object{"StreamName": c.main().name, "Tags": object{"aws:a": ""}},
					"InvalidArgumentException", "")
			},
		},
	}...)
}

func tagLists() []fact {
	return []fact{
		{
			"add-tags-to-stream/empty-answer", addTags, "The answer is 200 with an empty body.",
			inModel(addTags), nothing, func(c *check) {
				a := c.tagged().added
				c.want(a.status == 200 && len(a.body) == 0, "200, empty body", a.String())
			},
		},
		{
			"add-tags-to-stream/works", addTags,
			"Tags are added, those of the same key overwritten, and letters of all scripts are " +
				"letters.",
			kinesalite("removeTagsFromStream"), nothing, func(c *check) {
				c.equal("tags", tagsOf(c.tagged().all), object{
					"a": "first", "born": "again", "empty": "", "ü0 _.": "x", "/=+-@": "y",
				})
			},
		},
		{
			"add-tags-to-stream/fifty", addTags, "More than 50 tags are refused.",
			kinesalite("addTagsToStream"), nothing, func(c *check) {
				a := c.tagged().tooMany
				c.isError(a, "InvalidArgumentException", "")
				c.matches("message", a.message(),
					"^Failed to add tags to "+c.under(c.settings().name)+
						` because a given stream cannot have more than \d+ tags associated with `+
						`it\.$`)
			},
		},
		{
			"remove-tags-from-stream/works", removeTags,
			"Tags are removed, and keys that are not there make no difference.",
			kinesalite("removeTagsFromStream"), nothing, func(c *check) {
				a := c.tagged().removed
				c.want(a.status == 200 && len(a.body) == 0, "200, empty body", a.String())
				c.equal("tags", tagsOf(c.tagged().after), object{
					"a": "first", "born": "again",
					"empty": "",
				})
			},
		},
		{
			"list-tags-for-stream/members", listTagsForStream,
			"The answer has Tags, of Key and Value, and HasMoreTags.",
			localstack("test_add_tags_to_stream"), nothing, func(c *check) {
				c.members(c.tagged().all, "Tags", "HasMoreTags")
				c.equal("HasMoreTags", c.tagged().all.at("HasMoreTags"), false)
				c.members(c.tagged().all.list("Tags")[0], "Key", "Value")
			},
		},
		{
			"list-tags-for-stream/pages", listTagsForStream,
			"Limit cuts the list, HasMoreTags says so, and ExclusiveStartTagKey goes on.",
			onPage(listTagsForStream), nothing, func(c *check) {
				c.equal("tags", len(c.tagged().page.list("Tags")), 1)
				c.equal("HasMoreTags", c.tagged().page.at("HasMoreTags"), true)
				c.equal("the rest", len(c.tagged().rest.list("Tags")),
					len(c.tagged().all.list("Tags"))-1)
				c.want(!tagsOf(c.tagged().rest).has(c.tagged().page.text("Tags.0.Key")),
					"no tag twice", c.tagged().rest)
			},
		},
	}
}
